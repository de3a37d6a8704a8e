package com.example.store;

import java.util.List;
import static java.util.Map.entry;
import java.io.*;

/** Keeps things. */
@Deprecated
public abstract class Store<T> extends Base<T> implements Closeable, Iterable<T> {
    public static final int LIMIT = 10;
    private List<T> items, spare;

    public Store(int size) { super(size); init(); }

    /** Reads one. */
    @Override
    public T read(String key) throws IOException { return this.items.get(key.length()); }

    abstract void flush();

    enum Color implements Named { RED, GREEN { void paint() {} }; Color() {} }

    interface Visitor extends Runnable { void visit(Store<?> s); int DEFAULT = 1; }

    record Point(int x, int y) implements Shape { Point { check(x); } }

    @interface Marker { String value() default "x"; }

    static { entry(1, 2); }

    Runnable task() { return new Runnable() { public void run() { read("x"); Helper::go; } }; }
}
