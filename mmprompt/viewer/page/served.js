// Rows that a server shows: asked for as they come into sight.

const PAGE = 100;
const pages = new Map();
let version = 0;

function question(first) {
  const { groups = {}, ...filters } = state.filters;
  const asked = { query: state.query, from: first, count: PAGE, ...filters };
  for (const [name, value] of Object.entries(groups)) asked[`group.${name}`] = value;
  return new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== "" && value != null));
}

async function pageOf(number) {
  const asked = version;
  const answer = await (await fetch(`rows?${question(number * PAGE)}`)).json();
  if (asked !== version) return null;
  pages.set(number, answer.rows.map((row) => ({ places: [row.place], entries: [row.entry] })));
  if (pages.size > 50) pages.delete(pages.keys().next().value);
  return answer;
}

async function askServer() {
  version++;
  pages.clear();
  const answer = await pageOf(0);
  if (!answer) return;
  state.shown = { length: answer.total };
  state.total = answer.all;
  if (!answer.done) setTimeout(growing, 1000);
}

async function growing() { // rows are still being read
  const fresh = await (await fetch("head")).json();
  Object.assign(head, { sides: fresh.sides, codes: fresh.codes, done: fresh.done });
  if (fresh.done) head.counts = fresh.counts;
  const kept = [list.scrollTop, state.selected];
  if (fresh.done) showFilters();
  await filter();
  [list.scrollTop, state.selected] = kept;
  draw();
}

async function arrivedRow(place) { // a row that may not have been asked for yet
  const held = servedRow(place);
  if (held) return held;
  const number = Math.floor(place / PAGE);
  await pageOf(number);
  draw();
  return pages.get(number)?.[place % PAGE];
}

function servedRow(place) {
  const page = pages.get(Math.floor(place / PAGE));
  if (page) return page[place % PAGE];
  const number = Math.floor(place / PAGE);
  pages.set(number, []);
  pageOf(number).then((answer) => answer && draw());
  return undefined;
}
