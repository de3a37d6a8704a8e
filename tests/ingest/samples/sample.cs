using System;
using Text = System.Text;

namespace Example.Store
{
    /// <summary>Keeps things.</summary>
    [Serializable]
    public abstract class Store<T> : Base<T>, IDisposable where T : class
    {
        public const int Limit = 10;
        private readonly List<T> items = new List<T>(), spare;
        public event EventHandler Changed;
        public string Name { get; set; }
        public T this[int i] => items[i];
        public Store(int size) : base(size) { Init(); }
        ~Store() { }
        public static Store<T> operator +(Store<T> a, Store<T> b) => a;
        public virtual async Task<T> Read(string key) { return await this.items.Find(key); }
        public enum Color { Red, Green }
        void Local() { int Inner(int x) { return x; } Inner(1); }
    }
    public interface IVisitor : IRunnable { void Visit(Store<int> s); int Count { get; } }
    public struct Point { public int X; }
    public record Person(string Name) : IShape;
    public delegate void Handler(object sender);
}
