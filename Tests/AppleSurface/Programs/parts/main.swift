import AppleStandIn
import AudioToolbox
import Foundation
import Network
import Security
import TrunklineClient

// The SDK's Apple-only parts, run over the surfaces. Each line is what a test expects.
func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }

/// Frames of a ramp through both rings.
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
    owner.stop()  // behind what the notification has put on the unit's queue
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
  sockets.post("no address", bearer: "x", body: [])
  sockets.post("file:///etc/passwd", bearer: "x", body: [])
  say("done")
}

// the stand-in waits for the main queue: this must not be it
DispatchQueue.global().async {
  run()
  exit(0)
}
dispatchMain()
