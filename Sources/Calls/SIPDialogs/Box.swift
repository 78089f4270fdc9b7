/// A large value behind a reference, for tables of such values: one field changes in place (a `Dictionary` moves the whole value
/// out and in again), and a table that grows moves pointers. A value itself: shared storage is copied before it is changed.
///
///     var legs: [LegID: Box<Leg>] = [:]
///     legs[id] = Box(leg)
///     legs[id]?.value.phase = .confirmed          // in place
///     guard let leg = legs[id]?.value else { … }  // a copy, which later changes do not touch
@frozen public struct Box<Value: Sendable>: Sendable {
  // An array of one element is such a reference: one allocation, copied only when it is shared.
  @usableFromInline var storage: [Value]

  @inlinable public init(_ value: Value) { storage = [value] }

  @inlinable public var value: Value {
    get { storage[0] }
    _modify { yield &storage[0] }
  }
}
