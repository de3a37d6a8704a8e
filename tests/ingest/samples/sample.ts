import type { Request } from './http';
import fs = require('fs');

/** A thing that stores. */
export interface Storage<T> extends Base<T>, Closeable {
  readonly size: number;
  get(key: string): T | undefined;
}

export type Key = string | number;

export enum Color { Red, Green = 'g' }

export const DEFAULT: Key = 'x';

export abstract class Memory<T> extends Root implements Storage<T>, Closeable {
  private items = new Map<string, T>();
  constructor(private readonly name: string) { super(); }
  abstract flush(): void;
  get(key: string): T | undefined { return this.items.get(key); }
  @log() static of<T>(): Memory<T> { return helper(); }
}

export function parse(text: string): number;
export function parse(text: any): any { return JSON.parse(text); }

declare function external(x: number): void;
declare module 'ambient' { export const inner: number; }
namespace Geometry { export function area(r: number) { return r * r; } }
export const arrow = async (req: Request): Promise<void> => { await parse(req.url); };
export default function main() { return arrow; }

export interface Route {
  // in all ways
  (path: string): Route
  <P extends string = '/', H = {}>(path: P, handler: H): Route
  readonly name: string
  <T>(...handlers: T[]): Route
  mount(path: string): void
}
export const fetched = async (client: Client) => await client.load<Request>() ?? await parse<Request>();
