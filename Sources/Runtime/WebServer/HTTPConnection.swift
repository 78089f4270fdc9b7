import Glibc
import HTTP
import TrunklineBytes
import TrunklinePlatform
import WebSocket

/// One TCP connection of a port, with TLS or without. The server decides; this object holds its state and moves its octets.
///
/// | phase | leaves when | deadline |
/// |---|---|---|
/// | handshaking | TLS is done: request | first octet 2 s, then 10 s with the request |
/// | request | a request is complete: answering; an upgrade: webSocket; a refusal: closing | as above; 5 s between requests; a body with a sink a second more for 64 KiB, 2 min in all |
/// | answering | the answer is written: request, or closing | 30 s, with a sink 2 min: 504 |
/// | streaming | its stream is over: closing, after one with an end request; its client may no longer have it, or another stream replaces it: closing | 10 s in which its client reads nothing; with an end 30 s from piece to piece |
/// | webSocket | either side closes: closing | none: its owner counts heartbeats |
/// | closing | the peer closes too | 1 s after our last octet, WebSockets 5 s in all |
final class HTTPConnection {
  enum Phase { case handshaking, request, answering, streaming, webSocket, closing }

  /// State of a WebSocket only.
  struct Upgraded {
    let id: WebSocketID
    var frames: FrameReader
    var control: TokenBucket
    /// The payload of the last ping that was not answered yet (RFC 6455 §5.5.3: only the last one needs an answer).
    var ping: [UInt8]?
    /// The delegate was notified of the close.
    var isReported = false
  }
  /// The request that waits for its answer.
  struct Exchange {
    let number: UInt64
    var isHead: Bool
    /// HTTP/1.0.
    var isOld: Bool
    var keepsAlive: Bool
    /// A refusal counts against its address.
    var showsCredentials = false
  }
  /// The source of an answer's pieces, and their coding.
  struct Stream {
    enum Coding { case none, chunks(keepsAlive: Bool) }
    let source: any ResponseStream
    let coding: Coding
    /// It was not empty at the last read: once all is written it is read again, without a wake.
    var mayHaveMore = true
    init(_ source: any ResponseStream, _ coding: Coding) { (self.source, self.coding) = (source, coding) }
  }

  let number: UInt64
  let socket: TCPSocket
  let tls: TLSStream?
  /// The socket's address, and the one it is counted under: behind a proxy the one that the proxy names. Nil: not counted.
  let peer: IPAddress
  var counted: IPAddress?
  let isProxy: Bool
  var phase: Phase
  var reader: RequestReader?
  var exchange: Exchange?
  var webSocket: Upgraded?
  var stream: Stream?
  /// The sink for the body of the request that is being read.
  var sink: (any BodySink)?
  var sinkDeadline = Instant.distantFuture
  /// The stream's licence, and the octets appended since it began.
  var licence: StreamLicence?
  var appended: UInt64 = 0
  /// Its last request had good credentials: it is evicted last.
  var isTrusted = false
  /// When its last request was complete, or it began: the connection with the oldest time is the idlest.
  var served: Instant
  /// No complete request yet: evicted first when room is needed.
  var isSilent = true
  var hasSpoken = false
  /// The handshake waits for processor time.
  var waitsForAnswer = false
  let began: Instant
  var deadline: Instant
  var interest: IOEvents = .readable
  private(set) var out: [UInt8] = []
  private var written = 0
  private var handshakeWantsWrite = false
  /// Our side is shut down; octets read after that count in `lingered`.
  private(set) var hasShutDown = false
  var lingered = 0

  init(
    number: UInt64, socket: TCPSocket, tls: TLSStream?, peer: IPAddress, isProxy: Bool,
    bodyBytes: @escaping @Sendable (RequestHead) -> Int, hasSink: @escaping @Sendable (RequestHead) -> Bool, at now: Instant
  ) {
    (self.number, self.socket, self.tls, self.peer, self.isProxy) = (number, socket, tls, peer, isProxy)
    phase = tls == nil ? .request : .handshaking
    reader = RequestReader(bodyBytes: bodyBytes, isReadInParts: hasSink)
    began = now
    served = now
    deadline = now + Limits.firstOctetTime
  }

  /// The address that the delegate gets.
  var address: IPAddress { counted ?? peer }
  var queuedBytes: Int { out.count - written }

  /// The events that epoll must watch for now.
  var wanted: IOEvents {
    if phase == .handshaking { return waitsForAnswer ? [] : handshakeWantsWrite ? .writable : .readable }
    // A client may shut its side down after a request and still needs the answer: its end is handled when that is written.
    let isAnswering = phase == .answering || (phase == .streaming && stream?.source.hasEnd == true)
    let isBusy = isAnswering || (phase == .request && queuedBytes > 0) || (phase == .closing && !hasShutDown)
    var events: IOEvents = isBusy ? [] : .readable
    if queuedBytes > 0 { events.insert(tls?.writeWantsRead == true ? .readable : .writable) }
    return events
  }

  /// A WebSocket whose close frame is still to be written.
  var isLeaving: Bool { webSocket != nil && !hasShutDown }

  func removeSink() -> (any BodySink)? {
    defer { sink = nil }
    return sink
  }

  func append(_ octets: [UInt8]) {
    out += octets
    appended += UInt64(octets.count)
  }
  func appendFrame(_ kind: FrameWriter.Kind, _ payload: [UInt8]) { FrameWriter.append(kind, payload, to: &out) }
  func appendClose(_ code: UInt16) { FrameWriter.appendClose(code, to: &out) }

  /// A step of the TLS handshake.
  func handshake() -> TLSStream.Progress {
    guard let tls else { return .done }
    let progress = tls.handshake()
    handshakeWantsWrite = progress == .wantsWrite
    return progress
  }

  enum ReadResult { case bytes(Int), wait, closed }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
    guard let tls else {
      switch Result(catching: { () throws(SystemError) in try socket.read(into: buffer) }) {
      case .success(.bytes(let count)): return .bytes(min(count, buffer.count))
      case .success(.wait): return .wait
      case .success(.closed), .failure: return .closed
      }
    }
    let (count, progress) = tls.read(into: buffer)
    switch progress {
    case .done: return .bytes(min(count, buffer.count))
    case .wantsRead, .wantsWrite: return .wait
    case .closed, .failed: return .closed
    }
  }

  /// Writes as much as the kernel accepts, `Limits.writeBytes` at most; false if the connection is broken. Afterwards the queue
  /// is empty, or epoll will report room.
  func flush() -> Bool {
    if let ping = webSocket?.ping, queuedBytes < Limits.readBytes, phase == .webSocket {
      appendFrame(.pong, ping)
      webSocket?.ping = nil
    }
    let end = min(out.count, written + Limits.writeBytes)
    while written < end {
      let (count, continues) = out.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[written..<end])) }
      guard let count else { return false }
      written += count
      if !continues { return true }
    }
    if written == out.count { (out, written) = ([], 0) }
    return true
  }

  /// Octets written (nil: broken), and whether there is room for more.
  private func write(_ octets: UnsafeRawBufferPointer) -> (Int?, Bool) {
    guard let tls else {
      switch Result(catching: { () throws(SystemError) in try socket.write(octets) }) {
      case .success(let count): return (count, count == octets.count)
      case .failure: return (nil, false)
      }
    }
    let (count, progress) = tls.write(octets)
    switch progress {
    case .done: return (count, true)
    case .wantsRead, .wantsWrite: return (0, false)
    case .closed, .failed: return (nil, false)
    }
  }

  /// Ends our side once all is written: the peer gets an orderly end and can still be read.
  func shutDown() {
    guard !hasShutDown else { return }
    hasShutDown = true
    tls?.close()
    _ = Glibc.shutdown(socket.fd, Int32(SHUT_WR))
  }
}
