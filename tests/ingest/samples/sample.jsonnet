// Shop.
local base = import 'base.libsonnet';
local double(x) = x * 2;
{
  name: 'shop',
  size:: double(2),
  describe(prefix): prefix + self.name,
  nested: { inner: base.make(1) },
}
// The same as an array, for those who need every field by itself, one after the other in a list.
local fields(shop) = [base.show(shop[name]) for name in std.objectFields(shop)];
fields({})
