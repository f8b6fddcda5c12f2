"""Reports that need nothing but a browser: blocks in, one HTML file and one Markdown file out."""
