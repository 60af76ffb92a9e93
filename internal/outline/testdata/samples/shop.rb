# class No
=begin
def no
=end
module Shop
  class Cart < Base::Thing
    attr_reader :items
    TEXT = <<~A + <<-'B'
      def no
      end
    A
      class No
    B
    WORDS = %w[def class
      module]

    def initialize(items = [],
                   **options)
      @items = items.map { |i| "#{i["def"]}" }
      if items.empty? then return end
    end

    def self.build = new
    def total; 1 end
    private def secret?(x)
      x =~ /end"#{x}/ ? ?" : 'a\'b'
    end

    class << self
      def [](key) end
      def name=(v)
        @name = v
      end
    end

    def ==(other)
      begin
        other
      rescue
        nil
      end
    end
  end
  class Error < StandardError; end
end

def Shop.top
  puts 1 / 2
end
__END__
def never
end
