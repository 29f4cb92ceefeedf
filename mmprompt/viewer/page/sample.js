// One sample: its answer and findings, its conversation, and what stands behind it in tabs.

const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
let asked = 0;
let chosenTab = "Conversation";
let chosenTarget = head.target;

async function showSample(row, focus) {
  const ticket = ++asked;
  const details = await Promise.all(row.places.map((place, side) => place === undefined ? null : detailOf(side, place)));
  if (ticket !== asked) return;
  const pane = document.getElementById("sample");
  const sides = details.map((detail, side) => detail && sideOf(detail, row.entries[side], side, details[1 - side]));
  pane.replaceChildren(element("button", { id: "back", onclick: () => document.body.classList.remove("reading") }, "← Samples"),
    element("div", { class: "sides" }, ...sides.map((made) => made ?? element("p", { class: "empty" }, "This side lacks the sample."))));
  pane.scrollTop = 0;
  if (focus) document.body.classList.add("reading");
}

function sideOf(detail, entry, side, other) {
  const where = [head.sides[side].title, entry.file && `${entry.file}${entry.line ? `:${entry.line}` : ""}`, `row ${entry.row}`];
  return element("article", { class: "side" }, element("h2", {}, text(entry.id)),
    element("p", { class: "where" }, where.filter(Boolean).join(" · "), " ",
      ...Object.entries(entry.groups).map(([name, value]) => element("span", { class: "badge" }, `${name}: ${value}`))),
    resultOf(detail, side ? other : null), findingsOf({ ...detail, findings: [...(detail.findings ?? []), ...(entry.findings ?? [])] }), tabsOf(detail, side ? other : null, entry));
}

function text(value) { // text from data; characters that hide or turn others show their codes
  const made = document.createDocumentFragment();
  let position = 0;
  for (const found of String(value).matchAll(CONTROLS)) {
    made.append(value.slice(position, found.index));
    const code = `U+${found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    made.append(element("span", { class: "control", title: "a character that is not seen" }, code));
    position = found.index + 1;
  }
  made.append(String(value).slice(position));
  return made;
}

const spelled = (value) => (typeof value === "string" ? value : JSON.stringify(value));

function resultOf(detail, other) {
  const made = element("dl", { class: "result" });
  const add = (name, ...words) => made.append(element("dt", {}, name), element("dd", {}, ...words));
  detail.answers?.forEach((answer, number) => {
    if (answer != null) add(detail.answers.length > 1 ? `answer ${number + 1}` : "answer", text(spelled(answer)));
  });
  if (detail.choices?.length) add("choices", text(detail.choices.join("\n")));
  detail.replies?.forEach((reply, number) => {
    const place = [reply.turn != null && `turn ${reply.turn}`, reply.label != null && `label ${reply.label}`,
      reply.repeat != null && `repeat ${reply.repeat}`].filter(Boolean).join(", ");
    if (reply.error != null) add("error", element("span", { class: "bad" }, text(reply.error)));
    else if (reply.prediction != null) add(place ? `reply, ${place}` : "reply", changed(reply.prediction, other?.replies?.[number]?.prediction));
    const facts = [reply.perplexity != null && `perplexity ${reply.perplexity.toPrecision(5)}`,
      reply.seconds != null && `${reply.seconds.toFixed(2)} s`, reply.attempts > 1 && `${reply.attempts} attempts`,
      reply.finish_reason, reply.usage && Object.entries(reply.usage).filter(([, v]) => typeof v === "number").map(([k, v]) => `${k} ${v}`).join(", ")];
    const badge = reply.score == null ? null : element("span", { class: `badge ${reply.score >= 1 ? "good" : "bad"}` }, `score ${+reply.score.toFixed(3)}`);
    if (badge || facts.some(Boolean)) add(place && reply.prediction == null ? place : "", badge, facts.filter(Boolean).join(" · "));
  });
  return made.children.length ? made : null;
}

function findingsOf(detail) {
  const found = [...(detail.error ? [detail.error] : []), ...(detail.findings ?? []).filter((f) => f.message !== detail.error?.message)];
  if (!found.length) return null;
  return element("ul", { class: "findings", "aria-label": "Findings" }, ...found.map((finding) =>
    element("li", { class: finding.severity }, element("b", {}, finding.code), " ", element("span", {}, text(finding.message)),
      element("small", {}, text([finding.hint, finding.column && `column ${finding.column}`].filter(Boolean).join(" · "))))));
}

// ---- tabs

function tabsOf(detail, other, entry) {
  const tabs = {
    Conversation: () => conversationOf(detail, other),
    Media: () => mediaTable(detail),
    Segments: () => table(["column", "modality", "offset", "value"], (detail.segments ?? []).map((s) => [s.column, s.modality, s.offset, spelled(s.value)])),
    Prompt: () => element("div", {}, ...(detail.prompts ?? []).map(jsonOf)),
    Request: () => requestOf(detail),
    Row: () => table(["column", "value"], Object.entries(detail.columns ?? {}).map(([name, value]) => [name, spelled(value)])),
  };
  if (!detail.media?.length) delete tabs.Media;
  if (!detail.segments?.length) delete tabs.Segments;
  if (!detail.prompts?.length) delete tabs.Prompt;
  const panel = element("div", { role: "tabpanel", tabindex: "-1" });
  const bar = element("div", { role: "tablist", "aria-label": "Views of the sample" });
  const open = (name, focus) => {
    for (const tab of bar.children) {
      tab.setAttribute("aria-selected", String(tab.dataset.name === name));
      tab.tabIndex = tab.dataset.name === name ? 0 : -1;
      if (focus && tab.dataset.name === name) tab.focus();
    }
    panel.setAttribute("aria-label", name);
    panel.replaceChildren(tabs[name]());
  };
  for (const name of Object.keys(tabs))
    bar.append(element("button", { role: "tab", "data-name": name, onclick: () => { chosenTab = name; open(name); } }, name));
  bar.addEventListener("keydown", (event) => moved(event, bar, (name) => { chosenTab = name; open(name, true); }));
  open(chosenTab in tabs ? chosenTab : "Conversation");
  return element("div", {}, bar, panel);
}

function moved(event, bar, open) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const at = [...bar.children].indexOf(document.activeElement);
  open(bar.children[(at + step + bar.children.length) % bar.children.length].dataset.name);
}

function table(names, rows) {
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...names.map((n) => element("th", {}, n)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((cell) =>
      element("td", {}, cell instanceof Node ? cell : text(cell ?? ""))))))));
}

function jsonOf(json) {
  const pre = element("pre", { tabindex: "0" }, json);
  const copy = element("button", { class: "copy", onclick: async () => { await copied(pre); copy.textContent = "Copied"; } }, "Copy");
  return element("div", { class: "copied" }, pre, copy);
}

async function copied(pre) {
  try {
    await navigator.clipboard.writeText(pre.textContent);
  } catch {
    getSelection().selectAllChildren(pre);
    document.execCommand("copy");
  }
}

function requestOf(detail) {
  const box = element("div");
  const bar = element("div", { role: "tablist", "aria-label": "Targets" });
  const targets = Object.keys(detail.bodies ?? {});
  const open = (name, focus) => {
    chosenTarget = name;
    for (const tab of bar.children) {
      tab.setAttribute("aria-selected", String(tab.dataset.name === name));
      tab.tabIndex = tab.dataset.name === name ? 0 : -1;
      if (focus && tab.dataset.name === name) tab.focus();
    }
    box.replaceChildren(...detail.bodies[name].map((body) => body.json ? jsonOf(body.json) : element("p", { class: "bad" }, text(body.error))));
  };
  for (const name of targets) bar.append(element("button", { role: "tab", "data-name": name, onclick: () => open(name) }, name));
  bar.addEventListener("keydown", (event) => moved(event, bar, (name) => open(name, true)));
  if (targets.length) open(targets.includes(chosenTarget) ? chosenTarget : targets[0]);
  return element("div", {}, bar, box);
}
