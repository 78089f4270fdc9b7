#if !APPLE_SURFACE && (os(Linux) || os(macOS))
  import Foundation
  #if os(Linux)
    import TrunklineClient
  #endif

  /// Secrets that are closed until the first unlock, as the keychain is (R29).
  struct UnlockedSecrets: SecretStore {
    let files: FileSecrets
    func read(_ key: String) -> [UInt8]? { StandInApplication.isProtectedDataAvailable ? files.read(key) : nil }
    func write(_ key: String, _ value: [UInt8]?) -> Bool {
      StandInApplication.isProtectedDataAvailable && files.write(key, value)
    }
  }

  /// The phone's default parts, for apps that pass none.
  enum SystemParts {
    /// Samples of files: `PHONE_MICROPHONE` is played repeatedly (16-bit mono at 8 kHz, no header); silence without it.
    static func audio(ownsSession: Bool) -> any AudioDevice {
      let path = ProcessInfo.processInfo.environment["PHONE_MICROPHONE"] ?? ""
      let bytes = [UInt8](FileManager.default.contents(atPath: path) ?? Data())
      let samples = stride(from: 0, to: bytes.count - bytes.count % 2, by: 2).map {
        Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
      }
      return FileAudio(samples, sampleRateHz: 8_000, repeats: true, keepsHeard: false)
    }
    /// A folder in the user's home, which survives a kill.
    static func secrets() -> any SecretStore {
      let folder = ProcessInfo.processInfo.environment["PHONE_SECRETS"] ?? NSHomeDirectory() + "/.local/share/trunkline-phone"
      return UnlockedSecrets(files: FileSecrets(folder: folder))
    }
    #if os(Linux)
      static func sockets() -> any SocketConnector { WebSockets() }
      static func paths() -> (any PathMonitor)? { AddressMonitor() }
    #else
      static func sockets() -> any SocketConnector { URLSessionSockets() }
      static func paths() -> (any PathMonitor)? { NetworkPaths() }
    #endif
    static let startsInBackground = true
  }
#endif
