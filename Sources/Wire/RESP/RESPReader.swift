import CHiredis

/// Parses a server's bytes to values, by hiredis' reader. The stream may be split anywhere. One thread at a time.
///
///     let reader = RESPReader(Limits.reply)
///     try reader.append(bytes)
///     while let value = try reader.next() { … }
///
/// Bounds are checked before memory is allocated for a stated length: values are appended to one list as they arrive, so
/// `*1000000000` costs nothing, and no more than `Bounds.bytes` are kept of an incomplete value. After an error the stream ends:
/// every further call throws it again.
///
/// `unsafe`: hiredis' C structures are used in this file only. `tape` lives as long as the reader, and `privdata` points to it;
/// it is accessed through its pointer only, by `append` and `next` and by the callbacks within them.
public final class RESPReader {
  public struct Bounds: Hashable, Sendable {
    public var depth: Int
    /// Values in one reply, arrays included.
    public var elements: Int
    /// Limit of bytes in one reply, and of received bytes that wait for its end.
    public var bytes: Int
    public init(depth: Int, elements: Int, bytes: Int) { (self.depth, self.elements, self.bytes) = (depth, elements, bytes) }
  }

  private let raw: UnsafeMutablePointer<redisReader>
  private let functions: UnsafeMutablePointer<redisReplyObjectFunctions>
  private let tape: UnsafeMutablePointer<Tape>
  private var failure: RESPFailure?

  /// Nil: out of memory.
  public init?(_ bounds: Bounds = Limits.reply) {
    tape = .allocate(capacity: 1)
    tape.initialize(to: Tape(bounds))
    functions = .allocate(capacity: 1)
    functions.initialize(to: Tape.functions)
    guard let raw = redisReaderCreateWithFunctions(functions) else {
      functions.deallocate()
      tape.deinitialize(count: 1)
      tape.deallocate()
      return nil
    }
    raw.pointee.privdata = UnsafeMutableRawPointer(tape)
    self.raw = raw
  }

  deinit {
    redisReaderFree(raw)
    functions.deallocate()
    tape.deinitialize(count: 1)
    tape.deallocate()
  }

  /// Adds received bytes. Call `next` until it is nil before the next `append`.
  public func append(_ bytes: UnsafeRawBufferPointer) throws(RESPFailure) {
    if let failure { throw failure }
    guard !bytes.isEmpty else { return }
    guard redisReaderFeed(raw, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count) == REDIS_OK else {
      throw fail(.malformed(reason))
    }
  }

  /// The next complete value; nil: more bytes are needed.
  public func next() throws(RESPFailure) -> RESPValue? {
    if let failure { throw failure }
    var reply: UnsafeMutableRawPointer?
    guard redisReaderGetReply(raw, &reply) == REDIS_OK else { throw fail(tape.pointee.failure ?? .malformed(reason)) }
    guard reply != nil else {
      let limit = tape.pointee.bounds.bytes
      guard raw.pointee.len &- raw.pointee.pos <= limit else { throw fail(.tooLong(limit: limit)) }
      return nil
    }
    return tape.pointee.pop()
  }

  private func fail(_ failure: RESPFailure) -> RESPFailure {
    self.failure = failure
    tape.pointee.removeAll()
    return failure
  }

  private var reason: String {
    withUnsafeBytes(of: raw.pointee.errstr) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }
}

/// The values of one reply in the order in which hiredis reads them: an array before its elements.
private struct Tape {
  struct Node {
    var value: RESPValue
    /// How many elements follow; nil: not an array.
    var count: Int?
  }

  let bounds: RESPReader.Bounds
  private(set) var failure: RESPFailure?
  private var nodes: [Node] = []
  private var bytes = 0
  private var cursor = 0

  init(_ bounds: RESPReader.Bounds) {
    let depth = min(max(bounds.depth, Limits.depth.lowerBound), Limits.depth.upperBound)
    self.bounds = RESPReader.Bounds(depth: depth, elements: bounds.elements, bytes: bounds.bytes)
  }

  /// False makes hiredis end the stream.
  mutating func add(_ value: RESPValue, count: Int? = nil) -> Bool {
    guard nodes.count < bounds.elements else { return refuse(.tooManyElements(limit: bounds.elements)) }
    nodes.append(Node(value: value, count: count))
    return true
  }

  mutating func add(_ text: UnsafeBufferPointer<UInt8>, type: Int32) -> Bool {
    guard text.count <= bounds.bytes &- bytes else { return refuse(.tooLong(limit: bounds.bytes)) }
    bytes &+= text.count
    switch type {
    case REDIS_REPLY_STATUS: return add(.status(String(decoding: text, as: UTF8.self)))
    case REDIS_REPLY_ERROR: return add(.error(String(decoding: text.prefix(Limits.errorBytes), as: UTF8.self)))
    default: return add(.bytes(Array(text)))
    }
  }

  mutating func addArray(_ count: Int, depth: Int) -> Bool {
    guard depth <= bounds.depth else { return refuse(.tooDeep(limit: bounds.depth)) }
    guard count >= 0, count <= bounds.elements - nodes.count else { return refuse(.tooManyElements(limit: bounds.elements)) }
    return add(.null, count: count)
  }

  private mutating func refuse(_ why: RESPFailure) -> Bool {
    if failure == nil { failure = why }
    return false
  }

  mutating func removeAll() {
    nodes.removeAll(keepingCapacity: nodes.capacity <= Limits.keptNodes)
    cursor = 0
    bytes = 0
  }

  mutating func pop() -> RESPValue {
    defer { removeAll() }
    return value()
  }

  private mutating func value() -> RESPValue {
    guard cursor < nodes.count else { return .null }
    let node = nodes[cursor]
    cursor &+= 1
    guard let count = node.count else { return node.value }
    var elements: [RESPValue] = []
    elements.reserveCapacity(min(count, nodes.count))
    for _ in 0..<min(count, nodes.count) { elements.append(value()) }
    return .array(elements)
  }
}

/// Callbacks of hiredis. Each returns any pointer that is not nil: the values are on the tape.
extension Tape {
  private static var done: UnsafeMutableRawPointer? { UnsafeMutableRawPointer(bitPattern: 1) }

  private static func of(_ task: UnsafePointer<redisReadTask>?) -> UnsafeMutablePointer<Tape>? {
    task?.pointee.privdata?.assumingMemoryBound(to: Tape.self)
  }

  static let functions = redisReplyObjectFunctions(
    createString: { task, text, count in
      guard let task, let tape = of(task) else { return nil }
      let bytes = UnsafeRawBufferPointer(start: text, count: count).assumingMemoryBound(to: UInt8.self)
      return tape.pointee.add(bytes, type: task.pointee.type) ? done : nil
    },
    createArray: { task, count in
      guard let tape = of(task) else { return nil }
      var depth = 1
      var parent = task?.pointee.parent
      while let next = parent {
        depth += 1
        parent = next.pointee.parent
      }
      return tape.pointee.addArray(Int(count), depth: depth) ? done : nil
    },
    createInteger: { task, number in of(task)?.pointee.add(.integer(Int64(number))) == true ? done : nil },
    createNil: { task in of(task)?.pointee.add(.null) == true ? done : nil },
    freeObject: { _ in })
}
