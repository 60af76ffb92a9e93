namespace a::b {
namespace {
template <typename T, int N = (1 > 2)>
class EXPORT(x) Ring final : public Base<T>, private std::vector<int> {
  Q_OBJECT
public:
  explicit Ring(int n) noexcept : n_{n}, v_(n), m{} { fill(); }
  virtual ~Ring() = default;
  Ring &operator=(const Ring &) = delete;
  bool operator()(int a) const { return a < 3; }
  operator bool() const;
  template <class U> auto map(U &&u) -> decltype(u(1)) { return u(1); }
  std::function<void(int)> callback;
  int x{3}, y = 4;
  enum class Kind : int { A, B };
  struct { int hidden; } anonymous;
  friend void swap(Ring &, Ring &);
  [[nodiscard]] static constexpr int size() { return 1'000; }
  virtual void draw(int x = f(1)) const = 0;
signals:
  void changed();
};
}
using Map = std::map<int, int>;
template <> struct hash<Ring<int, 1>> { size_t operator()(const Ring<int, 1> &r) const; };
concept_t c = make(R"x(} class No { )x");
}
void a::b::Ring::run() { auto f = [](int x) { return x; }; struct Local { void no() {} }; }
Foo bar(1, 2);
std::ostream &operator<<(std::ostream &o, const Ring &r) { return o; }
extern template class Ring<int>;
