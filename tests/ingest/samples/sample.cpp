#include <vector>
#include "shape.hpp"
using namespace std;
using Text = std::string;

namespace geo::flat {

constexpr int kLimit = 4;

// A shape with an area.
template <typename T>
class Shape : public Base<T>, private detail::Mixin {
 public:
  explicit Shape(int n) : n_(n) {}
  virtual ~Shape();
  virtual double area() const = 0;
  Shape& operator+=(const Shape& other);
  static int count;
  enum class Mode : int { Fast, Slow };
  friend void inspect(const Shape& s);
 private:
  int n_{0};
  std::vector<T> items_;
};

struct Point final : Shape<int> { double x, y; double area() const override { return x * y; } };

template <typename T> T biggest(T a, T b) { return a > b ? a : b; }

double Point::area() const { return std::max(x, helper<int>(y)); }
Shape<int>::~Shape() { this->release(); auto* p = new Point(); }
int Shape<int>::count = 0;
const std::string& label(const Point& p) { return p.name(); }

concept_like auto lambda = [](int v) { return biggest(v, 1); };
}  // namespace geo::flat

extern "C" { void c_entry(int); }
#define WRAP(x) (x)
