"use strict";
// Where the page's data come from: packed in this page, in files beside it, or from the server that shows it.

const head = JSON.parse(document.getElementById("head").textContent);

function element(name, options = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

const parsed = new Promise((done) => {
  if (document.readyState !== "loading") done();
  else document.addEventListener("DOMContentLoaded", done);
});

async function packed(id) {
  const found = document.getElementById(id);
  if (found) return found.textContent;
  await parsed;
  return document.getElementById(id)?.textContent;
}

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

async function unpacked(base64) {
  const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// ---- rows

const chunks = new Map();
const arriving = new Map();

function received(name, base64) { // called by the files beside the page
  arriving.get(name)?.(base64);
}

function fromFile(name) {
  return new Promise((done, fail) => {
    arriving.set(name, done);
    const script = element("script", { src: `${head.folder}/${name}.js`, onerror: () => fail(new Error(name)) });
    document.head.append(script);
  });
}

async function chunk(name) {
  if (!chunks.has(name)) {
    if (chunks.size > 40) chunks.delete(chunks.keys().next().value);
    chunks.set(name, (async () => unpacked((await packed(name)) ?? (await fromFile(name))))());
  }
  return chunks.get(name);
}

async function detailOf(side, place) {
  if (head.served) return (await fetch(`row/${place}`)).json();
  return (await chunk(`rows-${side}-${Math.floor(place / head.chunk)}`))[place % head.chunk];
}

// ---- media

const addresses = new Map();

async function addressOf(digest, type, small = false) {
  const name = digest.slice(0, 20);
  const key = `${small ? "t" : "m"}-${name}`;
  if (!addresses.has(key)) {
    addresses.set(key, (async () => {
      const held = await packed(key);
      if (held) return URL.createObjectURL(new Blob([bytesOf(held)], { type: small ? "image/jpeg" : type }));
      if (small) return head.served ? `small/${name}` : null;
      return head.folder ? `${head.folder}/${name}${extensionOf(type)}` : null;
    })());
  }
  return addresses.get(key);
}

function extensionOf(type) {
  return head.extensions[type] || "";
}

const PLAYED = new Set(["image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp", "image/avif", "audio/wav",
  "audio/x-wav", "audio/mpeg", "audio/mp3", "audio/ogg", "audio/flac", "audio/aac", "audio/mp4", "audio/webm",
  "video/mp4", "video/webm", "video/ogg", "video/jpeg"]);
