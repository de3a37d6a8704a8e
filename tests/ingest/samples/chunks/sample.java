package org.example.cache;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/**
 * Keeps values for a while; the one not used for longest goes first.
 *
 * @param <K> what values are found by
 * @param <V> what is kept
 */
public final class ExpiringCache<K, V> {
    private static final int DEFAULT_SIZE = 1000;

    private final Map<K, Entry<V>> entries;
    private final Duration life;
    private final Clock clock;

    public ExpiringCache(Duration life, Clock clock) {
        this(life, clock, DEFAULT_SIZE);
    }

    public ExpiringCache(Duration life, Clock clock, int size) {
        this.life = life;
        this.clock = clock;
        this.entries = new LinkedHashMap<>(16, 0.75f, true) {
            @Override
            protected boolean removeEldestEntry(Map.Entry<K, Entry<V>> eldest) {
                return size() > size;
            }
        };
    }

    /** Returns the value of a key unless it is too old. */
    public synchronized Optional<V> get(K key) {
        Entry<V> entry = entries.get(key);
        if (entry == null) {
            return Optional.empty();
        }
        if (entry.end.isBefore(clock.instant())) {
            entries.remove(key);
            return Optional.empty();
        }
        return Optional.of(entry.value);
    }

    /** Returns the value of a key, and makes it first when it is not there. */
    public synchronized V computeIfAbsent(K key, Function<? super K, ? extends V> make) {
        Optional<V> known = get(key);
        if (known.isPresent()) {
            return known.get();
        }
        V value = make.apply(key);
        put(key, value);
        return value;
    }

    public synchronized void put(K key, V value) {
        entries.put(key, new Entry<>(value, clock.instant().plus(life)));
    }

    /**
     * Forgets what is too old.
     *
     * @return how many values went
     */
    public synchronized int purge() {
        int before = entries.size();
        Instant now = clock.instant();
        entries.values().removeIf(entry -> entry.end.isBefore(now));
        return before - entries.size();
    }

    private static final class Entry<V> {
        final V value;
        final Instant end;

        Entry(V value, Instant end) {
            this.value = value;
            this.end = end;
        }
    }
}
