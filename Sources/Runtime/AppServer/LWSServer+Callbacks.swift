import AppProtocol
import AppSessions
import Bytes
import CWebSockets
import Glibc
import Platform

// What lws reports, on the service thread. A non-zero result closes the connection.
extension LWSServer {
  func happened(_ reason: lws_callback_reasons, _ wsi: OpaquePointer, _ input: UnsafeRawBufferPointer) -> Int32 {
    switch reason {
    case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED: return accepted(wsi)
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION: return upgradeRequested(wsi)
    case LWS_CALLBACK_ESTABLISHED: opened(wsi)
    case LWS_CALLBACK_RECEIVE: received(wsi, input)
    case LWS_CALLBACK_RECEIVE_PONG: if let socket = sockets[wsi], !socket.isReported { delegate.webSocketAlive(socket.id) }
    case LWS_CALLBACK_SERVER_WRITEABLE: return sockets[wsi].map(writeable) ?? 0
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
      if input.count >= 2 { sockets[wsi]?.peerCode = CloseCode(rawValue: UInt16(input[0]) << 8 | UInt16(input[1])) }
    case LWS_CALLBACK_CLOSED: if let socket = sockets[wsi] { forget(socket, socket.peerCode) }
    case LWS_CALLBACK_HTTP: return requested(wsi, input)
    case LWS_CALLBACK_HTTP_BODY: return bodyReceived(wsi, input)
    case LWS_CALLBACK_HTTP_BODY_COMPLETION: bodyEnded(wsi)
    case LWS_CALLBACK_HTTP_WRITEABLE: return exchanges[wsi].map(writeable) ?? 0
    case LWS_CALLBACK_CLOSED_HTTP, LWS_CALLBACK_HTTP_DROP_PROTOCOL: dropExchange(wsi)
    case LWS_CALLBACK_WSI_DESTROY: destroyed(wsi)
    default: break
    }
    return 0
  }

  /// Counts sockets by address, because Debian's lws is built without its own limits.
  private func accepted(_ wsi: OpaquePointer) -> Int32 {
    guard let peer = peerAddress(lws_get_socket_fd(wsi)) else { return -1 }
    if peers.count >= settings.connections {
      metrics.refused[.tooMany].increment()
      return -1
    }
    if perAddress[peer, default: 0] >= settings.connectionsPerAddress {
      metrics.refused[.tooManyFromAddress].increment()
      return -1
    }
    peers[wsi] = peer
    perAddress[peer, default: 0] += 1
    metrics.connections.set(Int64(peers.count))
    return 0
  }

  private func destroyed(_ wsi: OpaquePointer) {
    if let socket = sockets[wsi] { forget(socket, socket.peerCode) }
    dropExchange(wsi)
    guard let peer = peers.removeValue(forKey: wsi) else { return }
    let left = perAddress[peer, default: 1] - 1
    perAddress[peer] = left > 0 ? left : nil
    metrics.connections.set(Int64(peers.count))
  }

  /// Before the 101: path, sub-protocol, origin. Without a sub-protocol lws would serve the first protocol of its list.
  private func upgradeRequested(_ wsi: OpaquePointer) -> Int32 {
    func refuse(_ why: ConnectionRefusal, _ status: UInt32) -> Int32 {
      metrics.refused[why].increment()
      lws_return_http_status(wsi, status, nil)
      return 1
    }
    guard let path = settings.webSocketPath, header(wsi, WSI_TOKEN_GET_URI) == path else { return refuse(.path, 404) }
    guard let chosen = lws_get_protocol(wsi), let name = chosen.pointee.name, strcmp(name, "trunkline.v1") == 0 else {
      return refuse(.subprotocol, 400)
    }
    if let origin = header(wsi, WSI_TOKEN_ORIGIN) {
      let host = header(wsi, WSI_TOKEN_HOST) ?? ""
      let scheme = settings.tls == nil ? "http" : "https"
      guard origin == "\(scheme)://\(host)" || delegate.allows(origin: origin) else {
        logger.notice(
          "a page of another origin was refused; auth.origins lists those allowed",
          metadata: ["origin": "\(origin.prefix(100))"])
        return refuse(.origin, 403)
      }
    }
    return 0
  }

  /// The value of a request header; nil if absent or too long.
  func header(_ wsi: OpaquePointer, _ token: lws_token_indexes) -> String? {
    let length = Int(lws_hdr_total_length(wsi, token))
    guard length > 0, length <= Limits.headerTextBytes else { return nil }
    var buffer = [CChar](repeating: 0, count: length + 1)
    let copied = Int(lws_hdr_copy(wsi, &buffer, Int32(buffer.count), token))
    guard copied > 0, copied <= length else { return nil }
    return String(decoding: buffer.prefix(copied).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private func peerAddress(_ fd: Int32) -> IPAddress? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(fd, $0, &length) }
    }
    guard result == 0 else { return nil }
    return SocketAddress(&storage)?.ip
  }
}
