// The page as a whole: its views and its colours.

function view(overview) {
  document.getElementById("overview").hidden = !overview;
  document.getElementById("browser").hidden = overview;
  document.getElementById("sample").hidden = overview;
  document.getElementById("show-overview").setAttribute("aria-pressed", String(overview));
  document.getElementById("show-samples").setAttribute("aria-pressed", String(!overview));
  if (overview) showOverview();
  else draw();
}

document.getElementById("show-samples").addEventListener("click", () => view(false));
document.getElementById("show-overview").addEventListener("click", () => view(true));
document.getElementById("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = dark === "dark" ? "light" : "dark";
});

(async () => {
  if (!head.served) {
    const indexes = await Promise.all(head.sides.map(async (_, side) => unpacked(await packed(`index-${side}`))));
    for (const entry of indexes.flat())
      entry.search = [entry.id, entry.text, entry.answer, entry.prediction].join("\n").toLowerCase();
    state.index = joined(indexes);
  }
  showFilters();
  await filter();
  if (matchMedia("(min-width: 801px)").matches && state.shown.length) select(0);
  document.documentElement.dataset.ready = "yes";
})();
