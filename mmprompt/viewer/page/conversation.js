// The conversation by role: texts with their origin, media in place, and what differs from the other side.

const ORIGINS = { row: "from the row", template: "from the template", example: "from an example" };

function conversationOf(detail, other) {
  const made = element("div");
  const spans = (detail.requests ?? []).flatMap((r) => r.messages.flatMap((m) => m.parts.flatMap((p) => p.spans ?? [])));
  const origins = new Set(spans.map(([origin]) => origin));
  if (origins.has("computed")) made.append(element("p", { class: "legend" }, "This template computes with its row: its texts are of the template and the row together."));
  else if (spans.length)
    made.append(element("p", { class: "legend" }, ...Object.keys(ORIGINS).filter((o) => origins.has(o) || o === "row" || o === "template").map((o) => element("span", {}, element("span", { class: o }, ORIGINS[o])))));
  (detail.requests ?? []).forEach((request, number) => {
    if (detail.requests.length > 1)
      made.append(element("h3", {}, request.turn != null ? `turn ${request.turn}` : `label ${request.label}`));
    request.messages.forEach((message, place) =>
      made.append(messageOf(message, detail, other?.requests?.[number]?.messages?.[place])));
    if (request.dropped) made.append(element("p", { class: "warning" }, `${request.dropped} examples had no room`));
  });
  return made;
}

function messageOf(message, detail, other) {
  const made = element("div", { class: `message ${message.role}` }, element("h3", {}, text(message.role)));
  message.parts.forEach((part, place) => {
    if (part.spans) made.append(partOf(part, other?.parts?.[place]));
    else made.append(mediumOf(detail.media[part.medium]));
  });
  for (const [name, value] of Object.entries(message.beside)) made.append(element("div", { class: "part" }, element("b", {}, `${name} `), text(spelled(value))));
  return made;
}

function partOf(part, other) {
  const whole = part.spans.map(([, words]) => words).join("");
  const before = other?.spans?.map(([, words]) => words).join("");
  if (before !== undefined && before !== whole) return element("div", { class: "part" }, changed(whole, before));
  return element("div", { class: "part" }, ...part.spans.map(([origin, words, columns]) =>
    element("span", { class: origin, title: columns ? `computed from ${columns.join(", ")}` : ORIGINS[origin] }, text(words))));
}

function changed(now, before) { // a text with its difference from another, by words
  if (before == null || before === now) return text(now);
  const [a, b] = [before, now].map((words) => words.match(/\s+|[^\s]+/g) ?? []);
  const made = document.createDocumentFragment();
  if (a.length * b.length > 4e6) {
    made.append(element("del", {}, text(before)), element("ins", {}, text(now)));
    return made;
  }
  for (const [kind, words] of steps(a, b)) made.append(kind ? element(kind, {}, text(words)) : text(words));
  return made;
}

function steps(a, b) {
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
  const found = [];
  const add = (kind, word) => {
    if (found.length && found.at(-1)[0] === kind) found.at(-1)[1] += word;
    else found.push([kind, word]);
  };
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { add("", a[i]); i++; j++; }
    else if (i < a.length && (j === b.length || common[(i + 1) * width + j] >= common[i * width + j + 1])) add("del", a[i++]);
    else add("ins", b[j++]);
  }
  return found;
}

// ---- media

function mediumOf(medium) {
  const made = element("figure", { class: "medium" });
  const caption = element("figcaption", {}, text(factsOf(medium)));
  const note = (words) => element("p", { class: "note" }, words);
  if (medium.url) made.append(note(`Sent by its address; this page fetches nothing: ${medium.url}`));
  else if (!medium.digests) made.append(note("This medium is not read."));
  else if (!PLAYED.has(medium.media_type)) made.append(note(`Browsers do not show ${medium.media_type}.`));
  else show(medium, made, caption, note);
  made.append(caption);
  return made;
}

async function show(medium, made, caption, note) {
  const found = await Promise.all(medium.digests.map((digest) => addressOf(digest, medium.media_type === "video/jpeg" ? "image/jpeg" : medium.media_type)));
  const failed = () => made.replaceChildren(note(`This browser cannot show ${medium.media_type}.`), caption);
  if (found.some((address) => !address)) failed();
  else if (medium.modality === "image") caption.before(picture(found[0], medium, failed, await addressOf(medium.digests[0], "", true)));
  else if (found.length > 1 || medium.media_type === "video/jpeg")
    caption.before(element("div", { class: "frames" }, ...found.map((address) => picture(address, medium, failed))));
  else caption.before(element(medium.modality, { controls: true, preload: "metadata", src: found[0], "aria-label": medium.name, onerror: failed }));
}

function picture(address, medium, failed, small) {
  const name = medium.name || "picture";
  const image = element("img", { src: small ?? address, alt: name, onerror: failed });
  return element("button", { class: "picture", "aria-label": `Open ${name} in full`, onclick: () => full(address, name) }, image);
}

function full(address, name) {
  const dialog = document.getElementById("full");
  dialog.querySelector("div").replaceChildren(element("img", { src: address, alt: name }), element("p", {}, text(name)));
  dialog.showModal();
}
document.getElementById("close").addEventListener("click", () => document.getElementById("full").close());

function sized(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1048576 ? `${Math.round(bytes / 1024)} KiB` : `${(bytes / 1048576).toFixed(1)} MiB`;
}

function factsOf(medium) {
  return [medium.name, medium.media_type, medium.width && `${medium.width}×${medium.height}`,
    medium.digests?.length > 1 && `${medium.digests.length} frames`, medium.seconds != null && `${medium.seconds.toFixed(1)} s`,
    medium.size && sized(medium.size), ...(medium.changes ?? [])].filter(Boolean).join(" · ");
}

function mediaTable(detail) {
  return table(["medium", "type", "pixels", "length", "size", "tokens", "changed", "SHA-256"], detail.media.map((medium) => [
    medium.name ?? medium.url, medium.media_type ?? medium.modality, medium.width ? `${medium.width}×${medium.height}` : "",
    medium.seconds != null ? `${medium.seconds.toFixed(2)} s` : "", medium.size ? sized(medium.size) : "",
    Object.entries(medium.tokens ?? {}).map(([name, count]) => `${name} ${count.toLocaleString("en")}`).join("\n"), (medium.changes ?? ["no"]).join("\n"), medium.digests?.[0].slice(0, 16) ?? ""]));
}
