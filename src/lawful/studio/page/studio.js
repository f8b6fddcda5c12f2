// The page of the studio. Text from files and from the server is set as text; the one exception is a law that the server
// has read and typeset, with everything escaped.
"use strict";

const $ = id => document.getElementById(id);
const state = {session: null, limit: 0, outputs: [], columns: [], asked: 0, drawn: 0, timer: null, polling: false};
if (location.search) history.replaceState(null, "", location.pathname);
const theme = () => matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

function say(id, text, kind = "") {
  $(id).textContent = text;
  $(id).className = "said " + kind;
}

function make(tag, text, kind) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

async function ask(path, words, raw = false) {
  const join = path.includes("?") ? "&" : "?";
  const url = state.session ? path + join + "session=" + encodeURIComponent(state.session) : path;
  const options = words === undefined ? {} : {method: "POST", body: words instanceof Blob ? words : JSON.stringify(words)};
  let answer;
  try {
    answer = await fetch(url, options);
  } catch {
    throw new Error("The studio does not answer; is it still running in the terminal?");
  }
  if (!answer.ok) {
    const found = await answer.json().catch(() => ({}));
    throw new Error(found.error || "The studio answered " + answer.status + ".");
  }
  return raw ? answer : answer.json();
}

// `code` between backticks, everything else as text
function marked(tag, text) {
  const element = make(tag);
  text.split("`").forEach((part, i) => element.append(i % 2 ? make("code", part) : part));
  return element;
}

// ---------------------------------------------------------------------- data

async function take(file) {
  const megabytes = n => (n / 2 ** 20).toFixed(1);
  forget();
  if (file.size > state.limit) {
    say("data-said", `${file.name} has ${megabytes(file.size)} MB; the studio takes ${+megabytes(state.limit)} MB. ` +
      "Use Python or `lawful fit` for it.", "wrong");
    return;
  }
  say("data-said", "reading " + file.name + " …");
  try {
    const table = await ask("/api/table?name=" + encodeURIComponent(file.name), new Blob([file]));
    say("data-said", `${table.name}: ${table.rows} rows, ${table.columns.length} columns`, "good");
    $("data-notes").replaceChildren(...table.notes.map(note => make("li", note)));
    state.columns = table.columns;
    showColumns();
    for (const id of ["outputs", "law", "fit"]) $(id).hidden = false;
    $("intro").hidden = true;
    changed();
  } catch (error) {
    say("data-said", error.message, "wrong");
  }
}

function forget() {
  state.outputs = [];
  state.columns = [];
  $("data-notes").replaceChildren();
  for (const id of ["outputs", "law", "fit", "picture", "compare", "doctor"]) $(id).hidden = true;
  $("intro").hidden = false;
  say("fit-said", "");
}

function showColumns() {
  $("columns").replaceChildren(...state.columns.map(column => {
    const button = make("button", column.name, "column");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.disabled = !column.numeric;
    button.title = column.numeric
      ? `from ${short(column.low)} to ${short(column.high)}` + (column.missing ? `, ${column.missing} gaps` : "")
      : `no numbers: ${column.example}`;
    button.onclick = () => {
      const on = !state.outputs.includes(column.name);
      button.setAttribute("aria-pressed", String(on));
      const chosen = state.outputs.filter(name => name !== column.name).concat(on ? [column.name] : []);
      state.outputs = state.columns.map(c => c.name).filter(name => chosen.includes(name));
      changed();
    };
    return button;
  }));
}

const short = x => x === null || x === undefined ? "–" : Number(x.toPrecision(3)).toString();

function example() {
  let seed = 7;
  const noise = () => { let s = 0; for (let i = 0; i < 6; i++) s += (seed = seed * 16807 % 2147483647) / 2147483647; return (s - 3) * .14; };
  const rows = ["angle,east,north"];
  for (let i = 0; i < 120; i++) {
    const t = -3 + 6 * i / 119;
    rows.push([t.toFixed(3), (Math.cos(t) + noise()).toFixed(4), (Math.sin(t) + noise()).toFixed(4)].join(","));
  }
  return take(new File([rows.join("\n")], "circle.csv")).then(() => {
    for (const button of $("columns").children) if (button.textContent !== "angle") button.click();
    $("formula").value = "east**2 + north**2 = 1";
    changed();
  });
}

// ---------------------------------------------------------------------- the law, as it is typed

function changed() {
  enable();
  $("compare-old").hidden = $("doctor-old").hidden = false;  // inside sections that are shown with their results
  say("fit-said", "");
  clearTimeout(state.timer);
  state.timer = setTimeout(() => { checkLaw(); drawData(); }, 300);
}

function enable() {
  const n = state.outputs.length;
  say("outputs-said", n ? `${n} output${n > 1 ? "s" : ""}: ${state.outputs.join(", ")}` : "No output is marked yet.");
  $("go").disabled = !n || state.polling;
  $("examine").disabled = !n || state.polling || !$("formula").value.trim();
}

async function checkLaw() {
  const turn = ++state.asked, text = $("formula").value;
  if (!state.outputs.length || !text.trim()) {
    $("law-lines").replaceChildren();
    say("law-said", text.trim() ? "Mark the outputs first." : "Without a law, the outputs are learned each for itself.");
    return;
  }
  try {
    const found = await ask("/api/law", {outputs: state.outputs, law: text});
    if (turn !== state.asked) return;  // a later question is on its way
    $("law-lines").replaceChildren(...found.lines.map(line => {
      const shown = make("div", undefined, "line " + (line.ok ? "right" : "wrong"));
      if (line.ok) shown.innerHTML = line.markup; else shown.textContent = line.message;
      return shown;
    }));
    say("law-said", found.said);  // how far off is for the reader to judge: no colour
  } catch (error) {
    if (turn !== state.asked) return;
    $("law-lines").replaceChildren();
    say("law-said", error.message, "wrong");
  }
}

function offer(menu) {
  for (const [group, sets] of Object.entries(menu)) {
    const part = make("optgroup");
    part.label = group;
    for (const [name, words] of Object.entries(sets)) {
      const option = make("option", `${words} · ${name}`);
      option.value = name;
      part.append(option);
    }
    $("sets").append(part);
  }
}

async function pick() {
  const name = $("sets").value;
  $("sets").value = "";
  if (!name) return;
  try {
    $("formula").value = (await ask("/api/set", {name, outputs: state.outputs})).law;
    changed();
    $("formula").focus();
  } catch (error) {
    say("law-said", error.message, "wrong");
  }
}

async function drawData() {
  const turn = ++state.drawn;
  if (!state.outputs.length) { $("picture").hidden = true; return; }
  try {
    const answer = await ask("/api/draw", {outputs: state.outputs, law: $("formula").value, theme: theme()}, true);
    const picture = await answer.blob();
    if (turn === state.drawn) show(picture, answer.headers.get("X-Law") === "drawn" ? "Data and law" : "Data");
  } catch {
    if (turn === state.drawn) $("picture").hidden = true;
  }
}

function show(blob, title) {
  const old = $("plot").src;
  $("plot").src = URL.createObjectURL(blob);
  if (old.startsWith("blob:")) URL.revokeObjectURL(old);
  $("picture-title").textContent = title;
  $("picture").hidden = false;
}

// ---------------------------------------------------------------------- fits and examinations

async function start(kind) {
  say("fit-said", "");
  $(kind === "fit" ? "compare" : "doctor").hidden = true;
  busy(true);
  try {
    await ask("/api/start", {kind, outputs: state.outputs, law: $("formula").value});
    await watch(kind);
  } catch (error) {
    say("fit-said", error.message, "wrong");
  }
  busy(false);
}

function busy(on) {
  state.polling = on;
  $("progress").hidden = $("stop").hidden = !on;
  $("bar").removeAttribute("value");
  $("stage").textContent = on ? "starting" : "";
  for (const id of ["go", "examine", "example", "file", "formula", "sets"]) $(id).disabled = on;
  for (const button of $("columns").children) button.disabled = on || !state.columns.find(c => c.name === button.textContent)?.numeric;
  enable();
}

async function watch(kind) {
  for (;;) {
    await new Promise(done => setTimeout(done, 350));
    const job = await ask("/api/job?kind=" + kind);
    if (job.state !== "running") return finished(job);
    if (job.stage !== "starting") $("bar").value = job.done / job.total;
    $("stage").textContent = `${job.stage} · ${Math.round(job.seconds)} s`;
  }
}

async function finished(job) {
  if (job.state !== "done") {
    say("fit-said", job.message || "It ended without an answer.", job.state === "failed" ? "wrong" : "");
    return;
  }
  say("fit-said", `Done in ${job.seconds.toFixed(0)} s.`, "good");
  if (job.kind === "doctor") return showDoctor(job.result);
  await showFit(job.result);
}

async function showFit(result) {
  const found = result.compare, law = found.law;
  const head = make("tr");
  head.append(make("th", "output"), make("th", law ? "without" : "error"), ...(law ? [make("th", "with")] : []));
  const body = found.outputs.map(row => {
    const line = make("tr"), better = law && row.with < row.without;
    line.append(make("th", row.output), make("td", short(row.without)));
    if (law) line.append(make("td", short(row.with), better ? "better" : ""));
    return line;
  });
  if (law) {
    const line = make("tr");
    line.append(make("th", "violation"), make("td", found.violation.without.toExponential(1)),
      make("td", found.violation.with.toExponential(1), "better"));
    body.push(line);
  }
  $("errors").replaceChildren(make("thead"), make("tbody"));
  $("errors").tHead.append(head);
  $("errors").tBodies[0].append(...body);
  const change = 100 * (1 - found.error.with / found.error.without);
  $("compare-said").textContent = !law
    ? `Errors (root mean square) on ${found.rows} held-out rows. Write a law to compare.`
    : `Errors (root mean square) on ${found.rows} held-out rows: with the law the squared error is ` +
      (Math.abs(change) < .5 ? "the same." : `${Math.abs(change).toFixed(0)} % ${change > 0 ? "lower" : "higher"}.`);
  $("command").textContent = result.command;
  $("compare-old").hidden = true;
  for (const what of ["model", "report"]) $("get-" + what).href = `/download/${what}?session=${encodeURIComponent(state.session)}`;
  $("compare").hidden = false;
  ++state.drawn;  // a picture of the data that is still on its way comes too late
  const picture = await ask("/api/picture?name=predictions-" + theme(), undefined, true);
  show(await picture.blob(), law ? "Predictions and law" : "Predictions");
  $("residuals").hidden = !law;
  if (law) $("residuals").src = `/api/picture?name=residuals-${theme()}&session=${encodeURIComponent(state.session)}`;
}

function showDoctor(result) {
  $("doctor-said").textContent = result.alarms.length ? "The law and the data do not agree:" : "No alarm: the data agree with the law.";
  $("alarms").replaceChildren(...result.alarms.map(text => marked("li", text)));
  $("doctor-notes").replaceChildren(...result.notes.concat(result.untested.map(t => "not tested: " + t)).map(text => marked("li", text)));
  const head = make("tr");
  head.append(...["equation", "rows", "mean", "noise", "sigma"].map(name => make("th", name)));
  $("equations").replaceChildren(make("thead"), make("tbody"));
  $("equations").tHead.append(head);
  $("equations").tBodies[0].append(...result.equations.map(e => {
    const line = make("tr");
    line.append(make("th", e.name), ...[e.rows, e.mean, e.noise, e.sigma].map(v => make("td", short(v))));
    return line;
  }));
  $("equations").parentElement.hidden = !result.equations.length;
  $("doctor-old").hidden = true;
  $("doctor").hidden = false;
}

// ---------------------------------------------------------------------- begin

$("file").onchange = () => { if ($("file").files.length) take($("file").files[0]); $("file").value = ""; };
$("example").onclick = example;
$("formula").oninput = changed;
$("sets").onchange = pick;
$("go").onclick = () => start("fit");
$("examine").onclick = () => start("doctor");
$("stop").onclick = () => ask("/api/cancel", {}).catch(error => say("fit-said", error.message, "wrong"));
for (const event of ["dragenter", "dragover"]) $("drop").addEventListener(event, e => { e.preventDefault(); $("drop").classList.add("over"); });
for (const event of ["dragleave", "drop"]) $("drop").addEventListener(event, e => { e.preventDefault(); $("drop").classList.remove("over"); });
$("drop").addEventListener("drop", e => { if (e.dataTransfer.files.length && !state.polling) take(e.dataTransfer.files[0]); });
for (const event of ["dragover", "drop"]) addEventListener(event, e => e.preventDefault());
addEventListener("pagehide", e => {
  if (!e.persisted && state.session) navigator.sendBeacon("/api/close?session=" + encodeURIComponent(state.session));
});
ask("/api/session", {}).then(found => { state.session = found.session; state.limit = found.limit; offer(found.sets); document.body.dataset.ready = "yes"; })
  .catch(error => say("data-said", error.message, "wrong"));
