import Foundation
import Observation
import TrunklineCallKit
import TrunklineClient

// Each code block of the articles and docstrings about `Phone` and `Call` stands here word for word: `DocumentationTests`.

@MainActor enum PhoneSamples {
  static func first(_ sockets: any SocketConnector) async {
    let phone = Phone(
      "wss://phone.example.com/v1/connect", system: .none, audio: NoAudio(), sockets: sockets
    ) { try await Backend.phoneToken() }
    let call = phone.call("+15551230001")
    for await state in call.states { print(state) }  // connecting, calling, 0:00, 0:01 … ended
  }

  static func settings() -> Phone {
    var calls = CallKitSystem.Settings()
    calls.isProduction = false  // a build that Xcode installs: its push token is the sandbox's
    calls.ringtone = "ring.caf"
    let phone = Phone("wss://phone.example.com/v1/connect", calls: calls) { try await Backend.phoneToken() }
    return phone
  }

  static func failures(_ phone: Phone) async {
    for await state in phone.states {
      if case .failed(let error) = state { log(error.description) }  // what to do about it
    }
  }

  static func media(_ phone: Phone) async {
    for await event in phone.events {
      switch event {
      case .media(let call, let pair, let roundTrip, let profile):
        log("\(call.id): \(pair?.local ?? "?") to \(pair?.remote ?? "?"), \(roundTrip ?? 0) ms, \(profile)")
      case .disconnected(let why): log("no gateway: \(why)")
      case .registered(let refusal): log(refusal.map { "no pushes: \($0)" } ?? "pushes come here")
      default: break
      }
    }
  }

  static func quality(_ call: Call) -> String {
    guard case .connected = call.state else { return call.state.description }
    let isPoor = call.quality?.level == "poor"
    return "\(call.state) \(isPoor ? "weak network" : "") \(call.statistics.concealedMilliseconds) ms made up"
  }

  static func microphone(_ phone: Phone, isGranted: Bool) {
    phone.microphone(isGranted ? .granted : .denied)
  }

  static func swap(_ phone: Phone) {
    // the held one talks, the other is held: one request each, in this order
    if let held = phone.calls.first(where: { $0.state == .held }) { held.hold(false) }
  }

  static func buttons(_ call: Call) -> [String] {
    var buttons = ["End", call.isMuted ? "Unmute" : "Mute"]
    if call.capabilities?.hold == true { buttons.append(call.isHeld ? "Resume" : "Hold") }
    if call.capabilities?.dtmf == true { buttons.append("Keypad") }
    if call.capabilities?.transfer == true { buttons.append("Transfer") }
    return buttons
  }

  static func attended(_ first: Call, _ second: Call) {
    first.transfer(with: second)  // the two other sides talk; both calls end here
  }

  static func conference(_ first: Call, _ second: Call) {
    if first.capabilities?.group == true, second.capabilities?.group == true { second.merge(with: first) }
  }

  static func recents(_ phone: Phone, _ activity: NSUserActivity) {
    if phone.call(activity) == nil { log("no call: \(activity.activityType)") }
  }

  static func alone(_ samples: [Int16]) -> Phone {
    let phone = Phone(
      "wss://phone.example.com/v1/connect", device: "bot-1", system: .none, audio: FileAudio(samples, repeats: true),
      sockets: WebSockets(), secrets: FileSecrets(folder: "/var/lib/bot"), paths: AddressMonitor()
    ) { try await Backend.phoneToken() }
    return phone
  }

  static func bot(_ phone: Phone) async {
    for await _ in phone.states where phone.state == .online { break }
    while true {
      for call in phone.calls where call.state == .ringing { call.answer() }
      await withCheckedContinuation { changed in
        withObservationTracking {
          _ = phone.calls.map(\.state)
        } onChange: {
          changed.resume()
        }
      }
    }
  }

  static func lines(_ phone: Phone, _ file: FileHandle) {
    phone.log(.info) { entry in
      file.write(Data((entry.description + "\n").utf8))  // 12.345 warning media-failed call=0192… stage=ice detail="…"
    }
  }

  static func tried(_ phone: Phone) async -> String {
    let result = await phone.preflight()
    if let error = result.network.error ?? result.microphone.error { return "\(error)" }
    let servers = result.servers.filter { !$0.isGood }.map { "\($0.url): \($0.failure ?? "")" }
    return servers.isEmpty ? "ready" : "ready, but for networks without UDP: \(servers)"
  }

  static func routes(_ phone: Phone, _ car: AudioRoute) async {
    for route in phone.audioRoutes { log("\(route.name)\(route == phone.audioRoute ? " is used" : "")") }
    phone.useAudioRoute(car)
    for await event in phone.events {
      switch event {
      case .audioRouteFellBack(let from, let to): log("\(from.name) is gone: \(to?.name ?? "another") is used until it is back")
      case .audioRouteReturned(let route): log("\(route.name) is back")
      default: break
      }
    }
  }

  static func meters(_ call: Call) -> (microphone: Double, speaker: Double) {
    // dBov: 0 is the loudest there is; speech lies between -40 and -10
    (call.statistics.microphoneLevel, call.statistics.speakerLevel)
  }

  static func pushed(_ system: NoCallSystem, _ payload: Data) {
    system.pushed([UInt8](payload))
  }
}
