"""What every layer uses: errors, values, settings, paths, languages, the registry, scheduling of lookups."""
