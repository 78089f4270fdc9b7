import Foundation
import TrunklineClient

// phone GATEWAY TOKEN NUMBER MICROPHONE HEARD: calls NUMBER, speaks the samples of MICROPHONE, and writes what is heard (16 bit, mono, 8 kHz).
let arguments = CommandLine.arguments
let microphone = try Data(contentsOf: URL(fileURLWithPath: arguments[4]))
let samples = microphone.withUnsafeBytes { Array($0.bindMemory(to: Int16.self)) }
let audio = FileAudio(samples, sampleRateHz: 8_000, repeats: true)
let token = arguments[2]
let phone = Phone(arguments[1], device: "bot-1", system: .none, audio: audio, sockets: WebSockets()) { token }
let call = phone.call(arguments[3])
var isConnected = false
for await state in call.states {
  print("\(state)")
  if case .connected = state, !isConnected {
    isConnected = true
    Task { @MainActor in
      try await Task.sleep(for: .seconds(6))
      call.end()
    }
  }
}
let heard = audio.drainReceived().samples
await phone.finish()
try heard.withUnsafeBytes { Data($0) }.write(to: URL(fileURLWithPath: arguments[5]))
