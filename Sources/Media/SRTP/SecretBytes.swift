import CTrunklineOpenSSL

/// Key bytes that are overwritten when the last reference is released, and that print as a mask.
///
/// A class because a struct's arrays are copied and freed implicitly. Created per key, never per packet.
final class SecretBytes: Sendable, CustomStringConvertible, CustomReflectable {
  /// `count` initialised bytes, written only by `init`; wiped and given to `free` in deinit.
  nonisolated(unsafe) private let memory: UnsafeMutableRawBufferPointer
  private let free: @Sendable (UnsafeMutableRawBufferPointer) -> Void

  /// `count` bytes, zero except those that `fill` writes.
  init<E: Error>(
    count: Int, free: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Void = { $0.deallocate() },
    fill: (UnsafeMutableRawBufferPointer) throws(E) -> Void
  ) throws(E) {
    memory = .allocate(byteCount: max(1, count), alignment: 16)
    memory.initializeMemory(as: UInt8.self, repeating: 0)
    self.free = free
    self.count = count
    try fill(UnsafeMutableRawBufferPointer(rebasing: memory[..<count]))
  }

  convenience init(_ bytes: some Collection<UInt8>) { self.init(count: bytes.count) { $0.copyBytes(from: bytes) } }

  deinit {
    OPENSSL_cleanse(memory.baseAddress, memory.count)
    free(memory)
  }

  let count: Int
  /// Valid while this object lives.
  var base: UnsafePointer<UInt8> { UnsafePointer(memory.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)) }
  subscript(index: Int) -> UInt8 { memory[index] }
  /// A copy that is never wiped.
  var array: [UInt8] { Array(memory[..<count]) }

  /// In constant time for equal lengths.
  func isEqual(to other: SecretBytes) -> Bool { count == other.count && CRYPTO_memcmp(base, other.base, count) == 0 }

  var description: String { "‹redacted›" }
  var customMirror: Mirror { Mirror(self, children: []) }
}
