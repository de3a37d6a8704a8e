# frozen_string_literal: true

require "set"
require "time"

module Notes
  class ParseError < StandardError; end

  # One note: a title, some tags, and text.
  class Note
    attr_reader :title, :tags, :text, :written

    def initialize(title, text, tags: [], written: Time.now)
      @title = title
      @text = text
      @tags = Set.new(tags)
      @written = written
    end

    def tagged?(tag)
      @tags.include?(tag)
    end

    # Returns the note as it is stored.
    def to_s
      head = ["title: #{@title}", "tags: #{@tags.sort.join(', ')}", "written: #{@written.iso8601}"]
      "#{head.join("\n")}\n\n#{@text}"
    end

    # Reads what +to_s+ wrote.
    #
    # Unknown fields are kept out of the text and lost.
    def self.parse(source)
      head, text = source.split("\n\n", 2)
      raise ParseError, "no text" if text.nil?

      fields = head.lines.to_h do |line|
        name, value = line.chomp.split(": ", 2)
        raise ParseError, "not a field: #{line}" if value.nil?

        [name.to_sym, value]
      end
      new(
        fields.fetch(:title) { raise ParseError, "no title" },
        text,
        tags: fields.fetch(:tags, "").split(", "),
        written: Time.iso8601(fields.fetch(:written))
      )
    end
  end

  # All notes of a folder.
  class Shelf
    include Enumerable

    def initialize(folder)
      @folder = folder
    end

    def each
      Dir.glob(File.join(@folder, "*.note")).sort.each do |path|
        yield Note.parse(File.read(path))
      rescue ParseError => problem
        warn "#{path}: #{problem.message}"
      end
    end

    def with(tag)
      select { |note| note.tagged?(tag) }
    end

    # Stores a note under a name made of its title.
    def add(note)
      name = note.title.downcase.gsub(/[^a-z0-9]+/, "-")
      path = File.join(@folder, "#{name}.note")
      raise ArgumentError, "#{path} is there" if File.exist?(path)

      File.write(path, note.to_s)
      path
    end
  end
end
