export function App({ items }) {
  return <ul title="it's">
    don't {items.map((i) => <li key={i}>{`}`} isn't</li>)}
  </ul>
}
export const Card = () => <p>{"}"} won't {/* ' */}</p>
const less = 1 < 2, more = 3 > 2
;(function () {
  function wrapped() { return 1 / 2 }
  exports.put = wrapped.get = function (a, b) {
    return a / b / 1
  }
})()
module.exports = { list() { return [] }, [App.name]: async () => {} }
class Old { static x = class {}; 'a b'() {} }
function last() {}
