import React, { useState as state } from 'react';
import * as path from "node:path";
const { readFile } = require('fs');

const LIMIT = 10;
let counter = 0, other;

/** Adds two numbers. */
function add(a, b) {
  const local = a + b; // LIMIT
  return local;
}

async function* stream(items) { yield* items; }

const double = (x) => add(x, x);
const square = function (x) { return x * x; };

class Store extends EventEmitter {
  #secret = 1;
  static instances = 0;
  constructor(name) { super(); this.name = name; }
  get size() { return this.items.length; }
  async load(key) { return `${path.join(key)} text ${state()}`; }
  static create = () => new Store('x');
}

const api = {
  fetch(url) { return double(url); },
  send: function (url) { return square(url); },
  close: () => {},
};

module.exports.helper = function helper() { return api.fetch(1); };
exports.other = add;
Store.prototype.clear = function () {};
export default Store;
export { add as plus };

const { get, set: assign, ...others } = require("./accessors");
let [first, second = 2] = others.pair;
const handlers = { "on-close": () => first, open() { const { inner } = second; return inner; } };
