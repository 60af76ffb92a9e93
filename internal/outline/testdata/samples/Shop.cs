using System;
using static System.Math;
[assembly: Foo("class X {")]
namespace Shop.Core
{
    [Serializable]
    public partial class Cart<T> : Base<T>, IDisposable where T : class, new()
    {
        private readonly Dictionary<string, Func<int, bool>> map = new() { { "}", x => true } };
        public event EventHandler Changed;
        public int Count { get; private set; } = 3;
        public string Name => $"{map["}"]} {{";
        public T this[int i] { get { return x[i]; } set { } }
        public Cart(int a) : base(a) { var s = @"a""}"; }
        ~Cart() { }
        public static bool operator ==(Cart<T> a, Cart<T> b) => true;
        public async Task<List<T>> FindAsync<R>(
            R r, int x = 3)
            where R : struct
        {
            void Local() { }
            if (x > 1) { lock (this) { } }
            return null;
        }
        public int Twice(int x) => x * 2;
        enum Kind { A, B = 2 }
#if DEBUG
        void Debug() {
#else
        void Debug(int x) {
#endif
        }
        abstract void None();
        delegate void Handler(object o);
    }
    public record Point(int X, int Y);
    public record struct P2(int X) { public int Z() { return """ " } """.Length; } }
    interface IShape { double Area(); string Name { get; } }
}
