import 'package:flutter/widgets.dart';

/// Keeps things.
abstract class Store extends Base implements Named {
  String read(String key) => helper(key);
}

enum Color { red, green }
typedef Handler = void Function(int);
int helper(String x) { return x.length; }
