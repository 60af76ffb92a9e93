package shop;
@Deprecated(since = "class X {")
public final class Shop<T extends Comparable<T>> extends Base<T> implements A, B {
    private static final int[] XS = {1, 2};
    private final Runnable r = () -> { go(); };
    private final Object o = new Object() { public void no() { } };
    static { init(); }
    public Shop(@NonNull T t) throws IOException { super(t); }
    @Override
    @SuppressWarnings({"unchecked", "x"})
    public <R> Map<String, List<R>> lock(
            Function<? super T, R> f,
            int... xs)
            throws E {
        char c = '}'; String s = "\"}"; String b = """
            } " class No {
            """;
        class Local { void no() { } }
        return null;
    }
    abstract void none();
    enum Kind implements A {
        ONE(1) { void no() { } }, TWO { }, THREE;
        private int x;
        Kind(int x) { this.x = x; }
    }
    record Point(int x, int y) implements A { Point { check(); } static int zero() { return 0; } }
    @interface Marker { String value() default "x"; int[] more() default {}; }
    sealed interface Shape permits A { default void draw() { } }
}
