// The choices above the list.

function choice(label, options, change) {
  const made = element("select", { "aria-label": label, title: label });
  made.append(element("option", { value: "" }, label));
  for (const [value, text] of options) made.append(element("option", { value }, text));
  made.addEventListener("change", () => {
    made.classList.toggle("used", made.value !== "");
    change(made.value);
    filter();
  });
  return made;
}

function showFilters() {
  const box = document.getElementById("choices");
  box.replaceChildren();
  const set = (name) => (value) => { state.filters[name] = value; };
  const counts = head.counts;
  const modalities = Object.entries(counts.modalities).map(([name, n]) => [name, `${name} (${n.toLocaleString("en")})`]);
  if (modalities.length > 1) box.append(choice("Any modality", modalities, set("modality")));
  const codes = Object.entries(counts.codes).map(([code, n]) => [code, `${code} ${head.codes[code].name} (${n.toLocaleString("en")})`]);
  if (codes.length) box.append(choice("Any findings", [["any", "with findings"], ...codes], set("code")));
  const scores = Object.entries(counts.scores).map(([kind, n]) => [kind, `${WORDS[kind]} (${n.toLocaleString("en")})`]);
  if (scores.length > 1 || counts.scores.right) box.append(choice("Any score", scores, set("score")));
  for (const [name, values] of Object.entries(counts.groups)) {
    const options = Object.entries(values).map(([value, n]) => [value, `${value} (${n.toLocaleString("en")})`]);
    box.append(choice(`Any ${name}`, options, (value) => { (state.filters.groups ??= {})[name] = value; }));
  }
  if (head.sides.length > 1)
    box.append(choice("Changed or not", [["any", "changed"], ["score", "score changed"], ["reply", "reply changed"],
      ["request", "request changed"]], set("changed")));
}

const WORDS = { right: "right", wrong: "wrong", partly: "partly right", failed: "no reply", none: "without score" };
const search = document.getElementById("search");
let waiting;
search.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { state.query = search.value; filter(); }, 60);
});
document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName)) {
    event.preventDefault();
    search.focus();
  }
  if (event.key === "Escape" && document.activeElement === search) list.focus();
  if (event.key === "ArrowDown" && document.activeElement === search) { event.preventDefault(); list.focus(); select(0); }
});
