// The list of samples: search, filters, and rows made only where they are seen.

const HEIGHT = 72;
const state = { index: [], shown: [], selected: -1, filters: {}, query: "" };
const list = document.getElementById("list");
const spacer = document.getElementById("spacer");
const made = new Map();
const ICONS = { // paths in a square of 24
  text: "M4 6h16M4 11h16M4 16h10",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9.5h.01",
  audio: "M4 9v6h4l5 4V5L8 9zM16.5 9a4 4 0 0 1 0 6M19 6.5a8 8 0 0 1 0 11",
  video: "M4 6h12v12H4zM16 10l5-3v10l-5-3",
};

function icon(name) {
  return drawn("svg", { viewBox: "0 0 24 24", class: "icon" }, drawn("path", { d: ICONS[name] }));
}

function joined(indexes) { // the rows of one side, or those of two with equal ids beside each other
  if (indexes.length === 1) return indexes[0].map((entry, place) => ({ places: [place], entries: [entry] }));
  const others = new Map(indexes[1].map((entry, place) => [entry.key, place]));
  const rows = indexes[0].map((entry, place) => {
    const other = others.get(entry.key);
    others.delete(entry.key);
    return { places: [place, other], entries: [entry, other === undefined ? undefined : indexes[1][other]] };
  });
  for (const place of others.values()) rows.push({ places: [undefined, place], entries: [undefined, indexes[1][place]] });
  return rows.map((row) => ({ ...row, ...differences(...row.entries) })).sort((a, b) => b.weight - a.weight);
}

function differences(one, other) {
  if (!one || !other) return { weight: 2, marks: [one ? "only left" : "only right"] };
  const marks = [];
  const scored = one.score !== other.score && one.score != null && other.score != null;
  if (scored) marks.push(`score ${one.score.toFixed(2)} → ${other.score.toFixed(2)}`);
  if (one.error !== other.error) marks.push("error");
  if (one.hash !== other.hash) marks.push("request");
  if (one.prediction !== other.prediction) marks.push("reply");
  return { marks, weight: scored ? 8 + Math.abs(one.score - other.score) : marks.length ? 1 : 0 };
}

function choose(row, filters, words) {
  return row.entries.some((entry) => entry && matches(entry, filters, words)) &&
    (!filters.changed || row.marks.length > 0 && (filters.changed === "any" || row.marks.some((m) => m.startsWith(filters.changed))));
}

function matches(entry, filters, words) {
  if (filters.modality && (filters.modality === "text" ? entry.modalities.length : !entry.modalities.includes(filters.modality)))
    return false;
  if (filters.code && (filters.code === "any" ? !entry.codes.length : !entry.codes.some((c) => c.startsWith(filters.code))))
    return false;
  if (filters.score && scoreKind(entry) !== filters.score) return false;
  for (const [name, value] of Object.entries(filters.groups || {}))
    if (value && String(entry.groups[name]) !== value) return false;
  return words.every((word) => entry.search.includes(word));
}

function scoreKind(entry) {
  if (entry.failed) return "failed";
  if (entry.score == null) return "none";
  return entry.score >= 1 ? "right" : entry.score <= 0 ? "wrong" : "partly";
}

async function filter() {
  const words = state.query.toLowerCase().split(/\s+/).filter(Boolean);
  if (head.served) await askServer();
  else state.shown = state.index.filter((row) => choose(row, state.filters, words));
  spacer.style.height = `${state.shown.length * HEIGHT}px`;
  for (const item of made.values()) item.remove();
  made.clear();
  const all = head.served ? state.total : state.index.length;
  const [found, of] = [state.shown.length, all].map((n) => n.toLocaleString("en"));
  document.getElementById("count").textContent = found === of ? `${of} samples` : `${found} of ${of} samples`;
  if (head.served && !head.done) document.getElementById("count").textContent += ", reading on";
  list.scrollTop = 0;
  draw();
}

function draw() {
  const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 2);
  const last = Math.min(state.shown.length, Math.ceil((list.scrollTop + list.clientHeight) / HEIGHT) + 2);
  for (const [place, item] of made) if (place < first || place >= last) { item.remove(); made.delete(place); }
  const fresh = document.createDocumentFragment();
  for (let place = first; place < last; place++) {
    if (made.has(place)) continue;
    const row = head.served ? servedRow(place) : state.shown[place];
    if (!row) continue;
    const item = itemOf(row, place);
    item.style.transform = `translateY(${place * HEIGHT}px)`;
    made.set(place, item);
    fresh.append(item);
  }
  list.append(fresh);
  clearTimeout(resting);
  resting = setTimeout(showPictures, 80);
}

let resting;
function showPictures() { // when the list rests: a medium that flies past is not unpacked
  for (const item of made.values()) {
    const look = item.firstChild;
    if (look.picture) showSmall(look, look.picture);
    look.picture = null;
  }
}

function itemOf(row, place) {
  const entry = row.entries[0] ?? row.entries[1];
  const look = element("span", { class: "look", "aria-hidden": "true" }, icon(entry.modalities[0] ?? "text"));
  if (entry.picture) look.picture = entry.picture;
  const tags = element("div", { class: "tags" });
  for (const mark of row.marks ?? []) tags.append(element("span", { class: "badge warning" }, mark));
  if (!row.marks && entry.score != null)
    tags.append(element("span", { class: `badge ${entry.score >= 1 ? "good" : "bad"}` }, `score ${+entry.score.toFixed(3)}`));
  if (entry.error) tags.append(element("span", { class: "badge error" }, "cannot be sent"));
  if (entry.failed) tags.append(element("span", { class: "badge error" }, "no reply"));
  for (const code of entry.codes.slice(0, 4)) tags.append(element("span", { class: `badge ${head.codes[code]?.severity}` }, code));
  const name = element("div", { class: "name" }, element("b", {}, entry.id), element("span", {}, `row ${entry.row}`));
  const text = element("div", { class: "text" }, entry.text.slice(0, 160));
  return element("div", {
    class: "item", role: "option", id: `item-${place}`, "aria-selected": String(place === state.selected),
    "aria-setsize": state.shown.length, "aria-posinset": place + 1, onclick: () => select(place, true),
  }, look, element("div", { class: "words" }, name, text, tags));
}

async function showSmall(look, picture) {
  const address = (await addressOf(picture[0], picture[1], true)) ??
    (head.folder || !picture[1].startsWith("image/") ? null : await addressOf(...picture));
  if (address) look.replaceChildren(element("img", { src: address, alt: "", onerror: (event) => event.target.replaceWith(icon("image")) }));
}

function select(place, focus = false) {
  if (place < 0 || place >= state.shown.length) return;
  made.get(state.selected)?.setAttribute("aria-selected", "false");
  state.selected = place;
  const top = place * HEIGHT;
  if (top < list.scrollTop) list.scrollTop = top;
  if (top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + HEIGHT - list.clientHeight;
  draw();
  made.get(place)?.setAttribute("aria-selected", "true");
  list.setAttribute("aria-activedescendant", `item-${place}`);
  if (head.served) arrivedRow(place).then((row) => row && place === state.selected && showSample(row, focus));
  else showSample(state.shown[place], focus);
}

list.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
new ResizeObserver(draw).observe(list);
list.addEventListener("keydown", (event) => {
  const page = Math.max(1, Math.floor(list.clientHeight / HEIGHT) - 1);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
  if (!(event.key in steps)) {
    if (event.key === "Enter") document.getElementById("sample").focus();
    return;
  }
  event.preventDefault();
  select(Math.min(state.shown.length - 1, Math.max(0, state.selected + steps[event.key])));
});
