import TrunklineBytes

/// The socket that a packet arrived on or leaves by: a number of the runtime's, opaque here.
public struct PacketRoute: Hashable, Sendable {
  public let raw: Int32
  @inlinable public init(raw: Int32) { self.raw = raw }
}

/// Packets to send, written by sessions into memory that the caller owns: a slab of fixed slots, filled and emptied by one
/// thread.
///
///     let room = batch.room            // 1,600 bytes of the next slot
///     … write `count` bytes …
///     batch.commit(count, to: address, route: route)
///
/// The runtime empties it before fewer than `OutgoingBatch.reserve` slots are left; packets beyond the capacity are dropped and
/// counted.
public struct OutgoingBatch: ~Copyable {
  /// The destination of the packet in a slot.
  public struct Entry: Sendable {
    public var destination: SocketAddress
    public var route: PacketRoute
    public var count: Int
  }
  /// Bytes of a slot: a packet and the tag that protection adds.
  public static let slotBytes = 1_600
  /// More slots than any single call into a session fills.
  public static let reserve = 24

  public let capacity: Int
  public private(set) var count = 0
  /// Packets dropped because the batch was full.
  public private(set) var overflowed: UInt64 = 0
  // `capacity` + 1 slots; overflowing packets are written to the last one and discarded; freed in deinit.
  private let slab: UnsafeMutablePointer<UInt8>
  private let entries: UnsafeMutablePointer<Entry>

  public init(capacity: Int) {
    precondition(capacity >= Self.reserve)
    self.capacity = capacity
    slab = .allocate(capacity: (capacity + 1) * Self.slotBytes)
    slab.initialize(repeating: 0, count: (capacity + 1) * Self.slotBytes)
    entries = .allocate(capacity: capacity)
    entries.initialize(
      repeating: Entry(destination: SocketAddress(.any, 0), route: PacketRoute(raw: -1), count: 0), count: capacity)
  }
  deinit {
    slab.deallocate()
    entries.deallocate()
  }

  /// True when the runtime should send before it calls into a session again.
  public var isNearlyFull: Bool { count > capacity - Self.reserve }

  /// The bytes of the next slot; valid until `commit` or `removeAll`.
  public var room: UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(start: slab + count &* Self.slotBytes, count: Self.slotBytes)
  }

  /// The bytes of slot `index` that are to be sent. `index` < `count`.
  public subscript(bytes index: Int) -> UnsafeMutableRawBufferPointer {
    precondition(index >= 0 && index < count)
    return UnsafeMutableRawBufferPointer(start: slab + index &* Self.slotBytes, count: entries[index].count)
  }
  /// The destination of slot `index`. `index` < `count`.
  public subscript(entry index: Int) -> Entry {
    precondition(index >= 0 && index < count)
    return entries[index]
  }

  /// Adds the packet that was written to `room`. HOT
  public mutating func commit(_ bytes: Int, to destination: SocketAddress, route: PacketRoute) {
    guard bytes > 0, bytes <= Self.slotBytes else { return }
    guard count < capacity else {
      overflowed &+= 1
      return
    }
    entries[count] = Entry(destination: destination, route: route, count: bytes)
    count &+= 1
  }

  public mutating func removeAll() { count = 0 }

  /// Packets dropped since the last call.
  public mutating func drainOverflowed() -> UInt64 {
    defer { overflowed = 0 }
    return overflowed
  }
}
