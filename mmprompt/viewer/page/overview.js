// The overview: counts and plots, drawn as SVG.

const SVG = "http://www.w3.org/2000/svg";

function drawn(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function number(value) {
  return Math.abs(value) >= 100 || value === Math.round(value) ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
}

function histogram(plot) {
  const [width, height] = [320, 120];
  const most = Math.max(...plot.bins.map((bin) => bin.values), 1);
  const step = width / plot.bins.length;
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height + 18}`, role: "img", "aria-label": `${plot.title}, from ${number(plot.bins[0].low)} to ${number(plot.bins.at(-1).high)} ${plot.unit}` });
  plot.bins.forEach((bin, place) => {
    const tall = (height * bin.values) / most;
    svg.append(drawn("rect", { class: "bar", x: place * step + 1, y: height - tall, width: Math.max(step - 2, 1), height: tall, rx: 2 },
      drawn("title", {}, `${bin.values.toLocaleString("en")} from ${number(bin.low)} to ${number(bin.high)} ${plot.unit}`)));
  });
  svg.append(drawn("text", { x: 0, y: height + 14 }, number(plot.bins[0].low)),
    drawn("text", { x: width, y: height + 14, "text-anchor": "end" }, `${number(plot.bins.at(-1).high)} ${plot.unit}`));
  return svg;
}

function bars(plot) {
  const [width, row] = [320, 30];
  const most = plot.most ?? Math.max(...plot.bars.map((bar) => bar.value), 1e-9);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${plot.bars.length * row}`, role: "img", "aria-label": `${plot.title}: ${plot.bars.map((bar) => `${bar.name} ${number(bar.value)}`).join(", ")}` });
  plot.bars.forEach((bar, place) => {
    const y = place * row;
    const words = bar.name.length > 40 ? `${bar.name.slice(0, 39)}…` : bar.name;
    svg.append(drawn("text", { x: 0, y: y + 11 }, words),
      drawn("text", { class: "value", x: width, y: y + 11, "text-anchor": "end" }, plot.most ? `${bar.value.toFixed(3)} (${bar.rows})` : bar.value.toLocaleString("en")),
      drawn("rect", { class: "track", x: 0, y: y + 15, width, height: 9, rx: 4 }),
      drawn("rect", { class: "bar", x: 0, y: y + 15, width: Math.max((width * bar.value) / most, 1), height: 9, rx: 4 }));
    if (bar.low != null)
      svg.append(drawn("line", { class: "range", x1: width * bar.low, x2: width * bar.high, y1: y + 19.5, y2: y + 19.5 }));
  });
  return svg;
}

function showOverview() {
  const pane = document.getElementById("overview");
  pane.replaceChildren(...head.sides.map((side) => element("section", {}, element("h2", {}, text(side.title)),
    element("div", { class: "tiles" }, ...side.tiles.map(([value, name]) => element("div", { class: "tile" }, element("b", {}, value), element("span", {}, name)))),
    element("div", { class: "plots" }, ...side.plots.map((plot) => element("figure", {}, element("figcaption", {}, text(plot.title)), plot.bins ? histogram(plot) : bars(plot)))),
    side.findings.length ? element("div", {}, element("h3", {}, "Findings on the whole dataset"), findingsOf({ findings: side.findings })) : null)));
}
