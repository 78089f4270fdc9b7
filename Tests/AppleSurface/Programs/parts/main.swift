import AppleStandIn
import AudioToolbox
import Foundation
import Glibc
import Network
import Security
import TrunklineClient

// Runs the SDK's Apple-only parts over the surfaces. A test expects each of the printed lines.
func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }

/// Passes frames of a ramp through both rings.
func pass(_ handle: AudioHandle, frames: Int) -> (captured: Bool, played: Int) {
  let microphone = surface_unit_microphone()
  for index in 0..<frames { microphone[index] = Int16(index + 1) }
  var ready = [Int16](repeating: 0, count: frames / 2)
  for index in 0..<ready.count { ready[index] = Int16(-index - 1) }
  handle.played.write(ready.span)
  guard surface_unit_tick(UInt32(frames)) == 0 else { return (false, -1) }
  var got = [Int16](repeating: 0, count: frames)
  var room = got.mutableSpan
  let isRead = handle.captured.read(into: &room)
  let isRamp = got.indices.allSatisfy { got[$0] == Int16($0 + 1) }
  let loudspeaker = surface_unit_loudspeaker()
  let isPlayed = ready.indices.allSatisfy { loudspeaker[$0] == ready[$0] }
  let isSilent = (ready.count..<frames).allSatisfy { loudspeaker[$0] == 0 }
  return (isRead && isRamp, isPlayed && isSilent && loudspeaker[frames] == 0x5555 ? ready.count : -1)
}

/// Reads one connection's request and answers 204: its lines, without those that curl and Foundation add.
final class Listener: Sendable {
  private let socket: Int32
  let port: UInt16

  init?() {
    socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let socket = socket
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, length) == 0 && listen(socket, 1) == 0 && getsockname(socket, $0, &length) == 0
      }
    }
    guard isBound else { return nil }
    port = UInt16(bigEndian: address.sin_port)
  }

  func request() -> [String] {
    let connection = accept(socket, nil, nil)
    var (text, buffer) = ("", [UInt8](repeating: 0, count: 4_096))
    while !text.contains("\r\n\r\n") || !text.hasSuffix("}") {
      let count = read(connection, &buffer, buffer.count)
      guard count > 0 else { break }
      text += String(decoding: buffer[..<count], as: UTF8.self)
    }
    let answer = Array("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n".utf8)
    _ = write(connection, answer, answer.count)
    close(connection)
    close(socket)
    return text.components(separatedBy: "\r\n").filter { line in
      ["POST ", "Authorization", "Content-Type", "Content-Length", "{"].contains { line.hasPrefix($0) }
    }.sorted()
  }
}

func run() {
  let phone = StandInPhone(.strict, clock: .virtual)
  phone.launch { NSObject() }
  let handle = AudioHandle()
  let unit = VoiceUnit()
  say("start before configure: \(unit.start())")
  say("configure: \(unit.configure(handle)), start: \(unit.start()), running: \(surface_unit_running())")
  for frames in [85, 160, 171, 512] { say("slice of \(frames): \(pass(handle, frames: frames))") }
  say("too long a slice: \(surface_unit_tick(5_000) != 0)")
  let before = surface_mallocs()
  for _ in 0..<1_000 {
    _ = surface_unit_tick(160)
    handle.captured.drain()
  }
  let mallocs = surface_mallocs() - before
  say("1,000 slices, mallocs: \(mallocs)")
  unit.stop()
  say(
    "stopped: \(surface_unit_running()) \(surface_unit_tick(160)), made \(surface_unit_made()), disposed \(surface_unit_disposed())"
  )
  say("start again: \(unit.start()), \(pass(handle, frames: 160))")
  unit.release()
  unit.release()
  say("released: \(surface_unit_running()), made \(surface_unit_made()), disposed \(surface_unit_disposed())")
  for call in 1...8 {
    surface_unit_refuse(Int32(call))
    let isRefused = unit.configure(handle) && !unit.start()
    say("call \(call) refused: \(isRefused), left: \(surface_unit_made() - surface_unit_disposed())")
  }
  surface_unit_refuse(0)

  // MARK: VoiceUnit that owns the audio session

  let session = AVAudioSession.sharedInstance()
  let owner = VoiceUnit(ownsSession: true)
  say("own session: \(owner.configure(handle)) \(session.category.rawValue) \(session.mode.rawValue), start: \(owner.start())")
  func after(_ event: () -> Void) -> String {
    let made = surface_unit_made()
    event()
    owner.stop()  // after the work that the notification put on the unit's queue
    defer { _ = owner.start() }
    return surface_unit_made() > made ? "anew" : "left alone"
  }
  func post(_ name: Notification.Name) { NotificationCenter.default.post(name: name, object: session) }
  say("same route: \(after { post(AVAudioSession.routeChangeNotification) })")
  say("media services reset: \(after { post(AVAudioSession.mediaServicesWereResetNotification) })")
  say("interruption over: \(after { post(AVAudioSession.interruptionNotification) })")
  let otherRate = after {
    phone.route(.bluetooth)
    phone.advance(.seconds(1))
  }
  say("other rate: \(otherRate), \(session.sampleRate) Hz")
  owner.release()
  say(
    "after the release: \(after { post(AVAudioSession.mediaServicesWereResetNotification) }), left: \(surface_unit_made() - surface_unit_disposed())"
  )

  // MARK: KeychainSecrets

  let secrets = KeychainSecrets()
  say("keychain: \(secrets.read("a") as Any) \(secrets.write("a", [1, 2])) \(secrets.read("a") ?? [])")
  say(
    "written over: \(secrets.write("a", [3])) \(secrets.read("a") ?? []), other service: \(KeychainSecrets(service: "b").read("a") as Any)"
  )
  say(
    "after first unlock, this device: \(Keychain.shared.accessible == ["trunkline/a": kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly])"
  )
  Keychain.shared.isLocked = true
  say("locked: \(secrets.read("a") as Any) \(secrets.write("a", [4])) \(secrets.write("a", nil))")
  Keychain.shared.isLocked = false
  say("deleted: \(secrets.write("a", nil)) \(secrets.read("a") as Any), again: \(secrets.write("a", nil))")

  // MARK: NetworkPaths

  let monitor = NetworkPaths()
  monitor.start { say("path changed") }
  for (status, number) in [(NWPath.Status.satisfied, 1), (.satisfied, 1), (.unsatisfied, 1), (.satisfied, 2)] {
    NWPathMonitor.last?.tell(NWPath(status: status, number: number))
  }
  monitor.stop()
  say("monitor cancelled: \(NWPathMonitor.last == nil)")

  // MARK: URLSessionSockets

  let sockets = URLSessionSockets()
  for address in ["", "phone.example.com", "https://phone.example.com/v1/connect", "wss://", "wss:// /"] {
    let socket = sockets.open(address) { say("\(address): \($0)") }
    socket.send([1])
    socket.close(1000)
  }

  // MARK: NetworkSocket

  say("no alternate for https: \(sockets.openAlternate("https://phone.example.com") { _ in } == nil)")
  for (interface, end) in [(NWInterface.InterfaceType.wifi, "peer"), (.cellular, "own"), (.wifi, "binary"), (.wifi, "refused")] {
    NWPathMonitor.path = NWPath(status: .satisfied, number: 3, interface: interface)
    guard
      let socket = sockets.openAlternate("wss://phone.example.com/v1/connect", events: { say("alternate \(end): \($0)") }),
      let connection = NWConnection.last
    else { return say("no alternate") }
    say("\(end): \(connection.text)")
    if end == "refused" {
      connection.tell(.waiting(NWError("no interface")))
      continue
    }
    connection.tell(.ready)
    socket.send(Array("{}".utf8))
    say("\(end) given: \(connection.give(Array("[]".utf8), NWProtocolWebSocket.Metadata(opcode: .text)))")
    switch end {
    case "peer":
      let close = NWProtocolWebSocket.Metadata(opcode: .close)
      close.closeCode = .privateCode(4009)
      _ = connection.give(nil, close)
    case "own": socket.close(1000)
    default: _ = connection.give([1], NWProtocolWebSocket.Metadata(opcode: .binary))
    }
    connection.queue?.sync {}
    for send in connection.sends { send.done(nil) }
    say("\(end) frames: \(connection.frames.map { "\($0.opcode) \($0.closeCode)" }), cancelled: \(connection.cancels)")
    connection.tell(.failed(NWError("late")))
  }

  // MARK: NetworkRelay

  for transport in RelayAddress.Transport.allCases {
    let address = RelayAddress(host: "192.0.2.7", port: 443, transport: transport, certificateHost: "turn.example.com")
    guard let relay = sockets.openRelay(address, events: { say("\(transport): \($0)") }), let connection = NWConnection.last
    else {
      return say("no relay")
    }
    say("\(transport) is \(connection.text)")
    relay.send([1])
    connection.tell(.preparing)
    connection.tell(.ready)
    say("\(transport) given: \(connection.give([2, 3])) \(connection.give([4]))")
    for _ in 0..<100 { relay.send([5]) }
    relay.close()
    relay.send([6])
    say("\(transport) sent: \(connection.sends.count), cancelled: \(connection.cancels)")
    for send in connection.sends { send.done(nil) }
    say("\(transport) when all is sent, cancelled: \(connection.cancels)")
    connection.tell(.cancelled)
    connection.tell(.failed(NWError("late")))
  }
  let turn = RelayAddress(host: "turn.example.com", port: 3478, transport: .tcp)
  for (why, tell) in [
    ("refused", { (connection: NWConnection) in connection.tell(.waiting(NWError("refused"))) }),
    ("reset", { $0.tell(.failed(NWError("reset"))) }),
    (
      "ended",
      { connection in
        connection.tell(.ready)
        _ = connection.give(nil, isLast: true)
      }
    ),
  ] as [(String, (NWConnection) -> Void)] {
    let relay = sockets.openRelay(turn) { say("\(why): \($0)") }
    if let connection = NWConnection.last {
      tell(connection)
      say("\(why), cancelled: \(connection.cancels > 0), in use: \(relay != nil)")
    }
  }
  let many = (0..<30).compactMap { _ in sockets.openRelay(turn) { _ in } }
  let nowhere = RelayAddress(host: "turn.example.com", port: 0, transport: .udp)
  say("no port: \(sockets.openRelay(nowhere) { _ in } == nil), at once: \(many.count)")

  sockets.post("no address", bearer: "x", body: [])
  sockets.post("file:///etc/passwd", bearer: "x", body: [])
  guard let listener = Listener() else { return say("no port") }
  sockets.post("http://127.0.0.1:\(listener.port)/v1/calls/x/reject", bearer: "wake", body: Array(#"{"reason":"declined"}"#.utf8))
  for line in listener.request() { say("posted \(line)") }
  // there is no longer a listener: Foundation on Linux has no WebSockets, an iPhone gets no connection; both end the task
  let ends = DispatchSemaphore(value: 0)
  let socket = sockets.open("ws://127.0.0.1:\(listener.port)/v1/connect") { event in
    if case .closed(let code, let why) = event { say("socket closed \(code), \(why == nil ? "without" : "with") a reason") }
    ends.signal()
  }
  socket.send(Array("{}".utf8))
  ends.wait()
  say("done")
}

// the stand-in waits for the main queue: this must run on another one
DispatchQueue.global().async {
  run()
  exit(0)
}
dispatchMain()
