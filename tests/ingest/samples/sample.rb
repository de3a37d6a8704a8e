require 'json'
require_relative "base"

LIMIT = 10

# Keeps things.
module Store
  class Memory < Base::Root
    include Enumerable
    extend Forwardable
    attr_reader :items, :name
    attr_accessor :size
    VERSION = "1.0"

    def initialize(name)
      @name = name
      reset!
    end

    # Reads one.
    def read(key)
      value = items.fetch(key) { "none #{LIMIT}" }
      helper(value)
    end

    def self.create(*args) = new(*args)

    class << self
      def build; end
    end

    def empty?
      @items.empty?
    end

    def [](key); end
    def ==(other); end
    alias_method :get, :read
    alias fetch read
    define_method(:dynamic) { 1 }
  end
end

def helper(x) = x
Point = Struct.new(:x, :y)
