package shop
import java.util.*
data class Point(val x: Int, val y: Int = 3) : Base(), A
sealed class Result<out T : Any> { object Loading : Result<Nothing>() }
class Cart(private val items: List<String>) : Base(items) {
    companion object {
        @JvmStatic fun create(): Cart = Cart(emptyList())
    }
    val size: Int get() = items.size
    override suspend fun <T> find(id: Int, f: (T) -> Boolean = { true }): T? where T : Any {
        fun local() {}
        return "${if (x) "}" else "{"}" as T
    }
    inner class Deep
    fun `with spaces`() {}
}
fun List<Int>.total(): Int =
    sum()
enum class Kind { A, B; fun next(): Kind = A }
interface Shape { fun area(): Double }
typealias Handler = (Int) -> Unit
fun last() {}
