import Foundation
import SamplePhone
import TrunklineCallKit

#if os(Linux)
  import TrunklineClient
#endif

/// What an app has already: a backend that gives its user a token.
struct NoToken: Error, CustomStringConvertible {
  let description = "no --token and no PHONE_TOKEN: a push alone lets this phone in"
}

@MainActor func makePhone(_ options: Options) -> Phone {
  let token: @Sendable () async throws -> String = { [token = options.token] in
    guard let token else { throw NoToken() }
    return token
  }
  #if os(Linux)
    if options.isAlone {
      let bytes = [UInt8](options.audio.flatMap { FileManager.default.contents(atPath: $0) } ?? Data())
      let samples = stride(from: 0, to: bytes.count - bytes.count % 2, by: 2).map {
        Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
      }
      return Phone(
        options.gateway, device: options.device, system: .none,
        audio: FileAudio(samples, sampleRateHz: 8_000, repeats: true, keepsHeard: false),
        sockets: WebSockets(), secrets: FileSecrets(folder: options.folder + "/secrets"), paths: AddressMonitor(), token: token)
    }
  #endif
  return Phone(options.gateway, token: token)
}

let options: Options
do {
  guard let read = try Options(Array(CommandLine.arguments.dropFirst())) else {
    print(Options.help)
    exit(0)
  }
  options = read
} catch {
  FileHandle.standardError.write(Data("sample-phone: \(error)\n".utf8))
  exit(64)
}

let model = SampleModel(folder: URL(fileURLWithPath: options.folder), phone: makePhone(options))
let screen = TextScreen(model, answers: options.answers, dials: options.call)
screen.show()
// A push may have started the process: nobody types then, and the end of the input ends nothing.
let reader = Thread {
  while let command = readLine() {
    DispatchQueue.main.async { MainActor.assumeIsolated { if !screen.handle(command) { exit(0) } } }
  }
}
reader.start()
dispatchMain()
