<html><?= "class No {" ?>
<?php
namespace Shop\Core;
use Foo\{Bar, Baz};
# class No {
#[Attribute(1)]
final class Cart extends Base implements A, B {
    use Helpers { a as b; }
    private array $items = ['}' => "{$x}"];
    public function __construct(private int $a = 3) { $f = function () { }; }
    public static function &find(string $id): ?self { return <<<EOT
        } function no() {
        EOT; }
    abstract protected function none(): void;
}
interface Shape { public function area(): float; }
trait Helpers { function help() { } }
enum Kind: string { case A = 'a'; public function label(): string { return 'x'; } }
if (!function_exists('late')) {
    function late(...$args) { }
}
function last() { return fn($x) => $x; }
?>
<p>function no() { }</p>
