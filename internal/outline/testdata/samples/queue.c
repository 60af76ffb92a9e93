#include <stdio.h>
#define MIN(a, b) ((a) < (b) \
	? (a) : (b))
#define EMPTY {
#ifdef A
int branch(int a) {
#else
int branch(long a) {
#endif
	return '}';
}
#if 0
void never(void) {
#endif
__BEGIN_DECLS
extern "C" {
struct node;
typedef struct node { struct node *next; union { int a; } u; } node_t, *node_p;
enum color { RED = 1, BLUE };
typedef int (*compare_t)(const void *, const void *);
typedef unsigned long size_type;
static inline struct node *push(struct node *n, int (*f)(int), const char *s) __attribute__((nonnull));
LUA_API int (lua_get)(int x);
int table[] = { MIN(1, 2), sizeof(struct node) };
struct node head = { .next = NULL };
void (*callback)(int);
}
static
struct node *
pop(struct node *n)
{
	if (n) { puts("}{"); }
	return n->next;
}
MODULE_LICENSE("GPL");
int main(argc, argv) { return 0; }
