#!/usr/bin/env bash
# A newcomer: a fresh folder, a fresh environment, the wheel, a table, a law. Under three minutes, nothing left behind.
#
#   scripts/newcomer.sh [folder with extractive_column.csv]      without a folder: a generated circle with gaps
#
# Fits by command line, predicts, looks at the model, loads it in Python and plots. KEEP=1 keeps the folder.
set -euo pipefail
here="$(cd "$(dirname "$0")/.." && pwd)"
data="${1:+$(cd "$1" && pwd)}"
started=$SECONDS
folder="$(mktemp -d)"
[ -n "${KEEP:-}" ] || trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset PYTHONPATH
step() { echo; echo "[$((SECONDS - started)) s] $*"; }

step "build the wheel, install it into an empty environment"
"${PYTHON:-python3}" -m venv env
scripts=env/bin; [ -d "$scripts" ] || scripts=env/Scripts
"$scripts/python" -m pip wheel --quiet --no-deps --wheel-dir wheels "$here"
"$scripts/python" -m pip install --quiet "$(ls "$PWD"/wheels/lawful-*.whl)[cli]"
PATH="$PWD/$scripts:$PATH"
lawful --version

if [ -n "$data" ]; then
    step "the distillation column: 3 inputs, 9 outputs, 6 balances; every fourth row to learn from"
    awk -F, -v OFS=, 'NR == 1 || ($1 != "" && NR % 4 == 0) {print $1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12}' \
        "$data/extractive_column.csv" > train.csv
    awk -F, -v OFS=, 'NR == 1 || ($1 != "" && NR % 4 != 0) {print $1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12}' \
        "$data/extractive_column.csv" > new.csv
    cat > settings.toml <<'TOML'
outputs = "y*"
inputs = "x*"
law = [
    "x1 + x2 = y1 + y2",
    "0.697616946*x1 = y1*y3 + y2*y6",
    "0.302383054*x1 = y1*y4 + y2*y7",
    "x2 = y1*y5 + y2*y8",
    "y3 + y4 + y5 = 1",
    "y6 + y7 + y8 = 1",
]
TOML
else
    step "a circle with noise, a third of the outputs missing"
    python - <<'PY'
import numpy as np, pandas as pd
from lawful.datasets import make_curve
data = make_curve("circle", 200, missing=1/3, random_state=0)
pd.DataFrame(np.c_[data.X, data.Y], columns=["x1", "y1", "y2"]).to_csv("train.csv", index=False)
pd.DataFrame(np.c_[data.X_test, data.Y_test], columns=["x1", "y1", "y2"]).to_csv("new.csv", index=False)
PY
    printf 'outputs = "y*"\nlaw = "y1**2 + y2**2 = 1"\n' > settings.toml
fi

step "fit"
lawful fit train.csv --config settings.toml --save model.lawful --report report.html
step "predict"
lawful predict model.lawful new.csv -o predictions.csv --strict
head -n 3 predictions.csv
step "info"
lawful info model.lawful
step "the same in Python"
python - <<'PY'
import numpy as np, pandas as pd, lawful
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

model = lawful.load("model.lawful")
new, out = pd.read_csv("new.csv"), pd.read_csv("predictions.csv")
outputs = model.output_names_
c = model.predict(new[list(model.feature_names_in_)])
assert np.allclose(c, out[outputs], rtol=1e-10, atol=1e-12), "the command line and Python agree"
spread = new[outputs].std().to_numpy()
error = np.sqrt(np.mean((c - new[outputs].to_numpy()) ** 2, axis=0)) / np.where(spread > 1e-12, spread, 1)
print("error over standard deviation:", dict(zip(outputs, error.round(6).tolist())))
print("largest violation:", out["residual"].max(), "status:", out["status"].value_counts().to_dict())
assert out["residual"].max() < 1e-8 and (out["status"] == "ok").all()
plt.plot(new[outputs[0]], c[:, 0], ".")
plt.xlabel("observed"), plt.ylabel("predicted")
plt.savefig("plot.png")
PY
ls -l model.lawful report.html predictions.csv plot.png
took=$((SECONDS - started))
step "done in $took s; processor time of this shell and of what it called:"
times
[ "$took" -lt "${LIMIT:-180}" ] || { echo "that is more than ${LIMIT:-180} s" >&2; exit 1; }
