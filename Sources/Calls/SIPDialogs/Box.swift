/// A large value behind a reference, for tables of such values: one field changes in place (a `Dictionary` moves the whole value
/// out and in again), and a table that grows moves pointers. A value itself: shared storage is copied before it is changed.
///
///     var legs: [LegID: Box<Leg>] = [:]
///     legs[id] = Box(leg)
///     legs[id]?.value.phase = .confirmed          // in place
///     guard let leg = legs[id]?.value else { … }  // a copy, which later changes do not touch
@frozen public struct Box<Value: Sendable>: @unchecked Sendable {
  // Unchecked: written only while no other reference exists.
  @usableFromInline final class Storage {
    @usableFromInline var value: Value
    @inlinable init(_ value: Value) { self.value = value }
  }
  @usableFromInline var storage: Storage

  @inlinable public init(_ value: Value) { storage = Storage(value) }

  @inlinable public var value: Value {
    get { storage.value }
    _modify {
      if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.value) }
      yield &storage.value
    }
  }
}
