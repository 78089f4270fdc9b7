import AppProtocol
import AppSessions
import Bytes
import CWebSockets
import Platform

/// One upgraded socket.
final class WebSocket {
  let id: ConnectionID
  let wsi: OpaquePointer
  /// Frames to send, from `head` on.
  var queue: [[UInt8]] = []
  var head = 0
  var queuedBytes = 0
  var pingsDue = false
  /// What has come of a fragmented message.
  var message: [UInt8] = []
  var closing: CloseCode?
  var peerCode: CloseCode?
  /// The delegate was told that it is closed (or never that it is open).
  var isReported = false

  init(id: ConnectionID, wsi: OpaquePointer) { (self.id, self.wsi) = (id, wsi) }

  func dropQueue() { (queue, head, queuedBytes) = ([], 0, 0) }
}

extension LWSServer {
  func opened(_ wsi: OpaquePointer) {
    lastNumber += 1
    let socket = WebSocket(id: ConnectionID(lastNumber), wsi: wsi)
    sockets[wsi] = socket
    socketOfID[socket.id] = socket
    metrics.webSockets.set(Int64(sockets.count))
    delegate.webSocketOpened(socket.id, from: peers[wsi] ?? .any)
  }

  /// The socket is gone, or is about to be.
  func forget(_ socket: WebSocket, _ code: CloseCode?) {
    guard sockets.removeValue(forKey: socket.wsi) != nil else { return }
    socketOfID[socket.id] = nil
    metrics.webSockets.set(Int64(sockets.count))
    if socket.closing == nil { metrics.closes.counter(code.map(\.description) ?? "none", "peer").increment() }
    report(socket, code)
  }

  private func report(_ socket: WebSocket, _ code: CloseCode?) {
    guard !socket.isReported else { return }
    socket.isReported = true
    delegate.webSocketClosed(socket.id, code)
  }

  /// A piece of a message: lws hands over what it has read.
  func received(_ wsi: OpaquePointer, _ piece: UnsafeRawBufferPointer) {
    metrics.bytesReceived.increment(by: UInt64(piece.count))
    guard let socket = sockets[wsi], socket.closing == nil else { return }
    if lws_frame_is_binary(wsi) != 0 { return fail(socket, .binary) }
    guard socket.message.count + piece.count <= AppProtocol.Limits.frameBytes else { return fail(socket, .tooBig) }
    socket.message.append(contentsOf: piece)
    guard lws_is_final_fragment(wsi) != 0 else { return }
    let message = socket.message
    socket.message = []
    delegate.webSocketReceived(socket.id, message)
  }

  /// The transport's own reasons to close: the session learns at once that its socket is of no use.
  private func fail(_ socket: WebSocket, _ code: CloseCode) {
    socket.message = []
    beginClose(socket, code)
    report(socket, nil)
  }

  func send(_ id: ConnectionID, _ bytes: [UInt8]) {
    guard let socket = socketOfID[id], socket.closing == nil else { return }
    guard socket.queuedBytes + bytes.count <= Limits.queueBytes, socket.queue.count - socket.head < Limits.queueFrames else {
      return delegate.webSocketCongested(id)
    }
    socket.queue.append(bytes)
    socket.queuedBytes += bytes.count
    lws_callback_on_writable(socket.wsi)
  }

  func ping(_ id: ConnectionID) {
    guard let socket = socketOfID[id], socket.closing == nil else { return }
    socket.pingsDue = true
    lws_callback_on_writable(socket.wsi)
  }

  func close(_ id: ConnectionID, _ code: CloseCode) {
    guard let socket = socketOfID[id], socket.closing == nil else { return }
    beginClose(socket, code)
  }

  func beginClose(_ socket: WebSocket, _ code: CloseCode) {
    guard socket.closing == nil else { return }
    socket.closing = code
    metrics.closes.counter(code.description, "gateway").increment()
    if code == .overflow { socket.dropQueue() }
    clws_timeout_user(socket.wsi, Limits.closeSeconds)
    lws_callback_on_writable(socket.wsi)
  }

  func writeable(_ socket: WebSocket) -> Int32 {
    if socket.pingsDue, socket.closing == nil {
      socket.pingsDue = false
      // With a payload, because lws does not report a pong without one.
      guard write(CollectionOfOne(UInt8(ascii: "t")), LWS_WRITE_PING, to: socket.wsi) else { return -1 }
    }
    while socket.head < socket.queue.count {
      if lws_send_pipe_choked(socket.wsi) != 0 {
        lws_callback_on_writable(socket.wsi)
        return 0
      }
      let frame = socket.queue[socket.head]
      socket.queue[socket.head] = []
      socket.head += 1
      socket.queuedBytes -= frame.count
      guard write(frame, LWS_WRITE_TEXT, to: socket.wsi) else { return -1 }
    }
    socket.dropQueue()
    guard let code = socket.closing else { return 0 }
    lws_close_reason(socket.wsi, lws_close_status(UInt32(code.rawValue)), nil, 0)
    return -1
  }

  /// lws writes its header into the room before the payload, and keeps a copy of what the kernel does not take.
  func write(_ bytes: some Collection<UInt8>, _ kind: lws_write_protocol, to wsi: OpaquePointer) -> Bool {
    let room = clws_pre()
    if scratch.count < room + bytes.count {
      scratch = [UInt8](repeating: 0, count: room + max(bytes.count, Limits.writeBytes))
    }
    metrics.bytesSent.increment(by: UInt64(bytes.count))
    return scratch.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return false }
      _ = UnsafeMutableBufferPointer(start: base + room, count: bytes.count).update(fromContentsOf: bytes)
      return lws_write(wsi, base + room, bytes.count, kind) >= 0
    }
  }
}
