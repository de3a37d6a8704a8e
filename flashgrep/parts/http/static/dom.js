// Creating elements without markup: content of files becomes text, never HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Return an HTML element; `on…` attributes are listeners, nested lists of children are flattened. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Return an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Replace the children of an element. */
export function show(element, ...children) {
  element.replaceChildren();
  return fill(element, {}, children);
}

/** Return a text with parts of it marked; `spans`: [start, end) in UTF-16 units, in order. */
export function mark(text, spans) {
  const parts = [];
  let at = 0;
  for (const [start, end] of spans) {
    if (start < at || end <= start) continue;
    parts.push(text.slice(at, start), h("mark", {}, text.slice(start, end)));
    at = end;
  }
  parts.push(text.slice(at));
  return parts;
}

/** Show a message in the status line, which screen readers announce. */
export function tell(message, isError = false) {
  const status = document.getElementById("status");
  status.textContent = message;
  status.classList.toggle("error", isError);
}

/** Return a number with thousands separators. */
export function count(number) {
  return number.toLocaleString("en");
}
