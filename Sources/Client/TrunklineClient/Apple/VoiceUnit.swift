#if os(iOS) || APPLE_SURFACE
  import AVFAudio
  import AudioToolbox
  import Foundation

  /// Microphone and loudspeaker of an iPhone: the VoiceProcessingIO unit by its C interface, with the system's echo cancellation. The unit
  /// converts between the hardware's rate and the rings' 16 kHz.
  ///
  /// Each start makes a new unit, so that a restart after a route change, or a reset of the media services, has no old state.
  public final class VoiceUnit: AudioDevice, @unchecked Sendable {
    // Unchecked: everything below is used on `queue` only. The unit's thread sees a `VoiceRender`, which does not change while it
    // runs.
    private let queue = DispatchQueue(label: "trunkline.voice-unit", qos: .userInteractive)
    private let ownsSession: Bool
    private var handle: AudioHandle?
    private var render: VoiceRender?
    private var isWanted = false
    /// Sample rate in Hz of the route on which the unit was last started.
    private var sampleRate = 0.0
    private var observers: [any NSObjectProtocol] = []
    /// Preferred duration in seconds. The rings are filled by frames of 20 ms.
    private static let bufferDuration = 0.02

    /// - Parameter ownsSession: true without CallKit: the unit then configures and activates the audio session, and watches its
    ///   route.
    ///   With CallKit the system activates the session: this must then be false.
    public init(ownsSession: Bool = false) { self.ownsSession = ownsSession }

    deinit {
      render?.end()
      for observer in observers { NotificationCenter.default.removeObserver(observer) }
    }

    public func configure(_ handle: AudioHandle) -> Bool {
      queue.sync {
        self.handle = handle
        try? AVAudioSession.sharedInstance().setPreferredIOBufferDuration(Self.bufferDuration)
        return !ownsSession || configureSession()
      }
    }

    public func start() -> Bool {
      queue.sync {
        isWanted = true
        return begin()
      }
    }

    public func stop() {
      queue.sync {
        isWanted = false
        end()
      }
    }

    public func release() {
      stop()
      queue.sync {
        handle = nil
        for observer in observers { NotificationCenter.default.removeObserver(observer) }
        observers = []
        if ownsSession { try? AVAudioSession.sharedInstance().setActive(false, options: .notifyOthersOnDeactivation) }
      }
    }

    private func begin() -> Bool {
      end()
      let session = AVAudioSession.sharedInstance()
      guard let handle, !ownsSession || (try? session.setActive(true)) != nil,
        let made = VoiceRender(handle.captured, handle.played), made.start()
      else { return false }
      render = made
      sampleRate = session.sampleRate
      handle.expectBursts(of: Int((session.ioBufferDuration * Double(AudioHandle.sampleRateHz)).rounded(.up)))
      return true
    }

    private func end() {
      render?.end()
      render = nil
    }

    // MARK: without CallKit

    private func configureSession() -> Bool {
      let session = AVAudioSession.sharedInstance()
      let options: AVAudioSession.CategoryOptions = [.allowBluetoothHFP, .allowBluetoothA2DP]
      guard (try? session.setCategory(.playAndRecord, mode: .voiceChat, options: options)) != nil else { return false }
      if observers.isEmpty {
        observe(AVAudioSession.routeChangeNotification) { unit in
          let rate = AVAudioSession.sharedInstance().sampleRate
          return unit.render == nil || rate > 0 && rate != unit.sampleRate
        }
        observe(AVAudioSession.interruptionNotification) { _ in true }
        observe(AVAudioSession.mediaServicesWereResetNotification) { _ in true }
      }
      return true
    }

    /// Restarts a unit that should run, if `isDue`.
    private func observe(_ name: Notification.Name, _ isDue: @escaping @Sendable (VoiceUnit) -> Bool) {
      let observer = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { [weak self] _ in
        self?.queue.async { [weak self] in if let self, isWanted, isDue(self) { _ = begin() } }
      }
      observers.append(observer)
    }
  }
#endif
