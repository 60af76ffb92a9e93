#![allow(dead_code)]
use std::{fmt, io};
/* outer /* nested } */ fn no() {} */
const TABLE: [u8; 2] = { [1, 2] };
#[derive(Debug)]
pub(crate) struct Ring<'a, T: 'a = u8> where T: Copy {
    items: &'a [T],
}
pub struct Unit;
struct Tuple(u8, char);
impl<'a, T> fmt::Display for Ring<'a, T> where T: Copy {
    type Out = u8;
    const N: usize = 1;
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = '{'; let q = '\''; let s = r#"} fn no() { ""#;
        fn local() {}
        write!(f, "}}")
    }
}
impl Ring<'_, u8> { pub async unsafe fn go<F: Fn(u8) -> u8>(f: F) -> impl Fn() -> u8 { move || 1 } }
pub trait Shape { fn area(&self) -> f64; fn name() -> &'static str { "}" } }
mod inner { pub enum Kind { A { x: u8 }, B } }
extern "C" { fn c_call(x: i32); }
pub extern "C" fn exported() {}
macro_rules! square { ($x:expr) => { $x * $x }; }
lazy_static! { static ref X: u8 = 1; }
fn last<const N: usize>() -> [u8; N] where [u8; N]: Sized { [0; N] }
