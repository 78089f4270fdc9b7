public import Foundation
public import Observation
public import TrunklineCallKit

/// All that the sample's screens show and do: a SwiftUI view reads these properties, a button calls one of these methods. Made once, at launch.
@MainActor @Observable
public final class SampleModel {
  // MARK: the dialler

  /// What is typed. Kept as typed; `dial` takes the blanks out.
  public var number = ""

  /// Calls the number, else the last one called.
  public func dial() {
    let wanted = number.isEmpty ? recents.first { $0.isOutgoing }?.number ?? "" : number
    number = ""
    call(wanted)
  }

  public func call(_ number: String) {
    let call = phone.call(number, from: settings.callerNumber.isEmpty ? nil : settings.callerNumber)
    if let error = call.error { notice = "\(error)" }
  }

  /// A tap in Recents or Contacts, or what was said to Siri. False: the activity names nobody to call.
  @discardableResult
  public func call(_ activity: NSUserActivity) -> Bool {
    guard let call = phone.call(activity) else { return false }
    if let error = call.error { notice = "\(error)" }
    return true
  }

  // MARK: the call screen

  public var calls: [Call] { phone.calls }
  /// The one that the buttons are about: ringing before connected before held.
  public var current: Call? {
    calls.first { $0.state == .ringing } ?? calls.first { $0.endReason == nil && !$0.isHeld }
      ?? calls.first { $0.endReason == nil }
  }
  public func canHold(_ call: Call) -> Bool { call.capabilities?.hold == true }
  public func canTransfer(_ call: Call) -> Bool { call.capabilities?.transfer == true }

  // MARK: what else is shown

  public var state: Phone.State { phone.state }
  /// The newest first; at most 100.
  public private(set) var recents: [RecentCall]
  /// What went wrong last, and what to do about it. The view clears it.
  public var notice: String?
  public var settings: DeviceSettings {
    didSet {
      phone.doNotDisturb = settings.doesNotDisturb
      store.write(settings)
    }
  }
  /// While the app is open: asks for the microphone, if nobody has asked yet.
  public func askForMicrophone() async { await phone.askForMicrophone() }
  /// What the user said when the app itself asked for the microphone.
  public func microphone(_ permission: Phone.MicrophonePermission) { phone.microphone(permission) }
  /// The device leaves the gateway's list; recents stay.
  public func logOut() async { await phone.logOut() }

  @ObservationIgnored private let phone: Phone
  @ObservationIgnored private let store: ModelStore
  @ObservationIgnored private var watched: Set<UUID> = []
  @ObservationIgnored private var tasks: [Task<Void, Never>] = []

  /// - Parameters:
  ///   - folder: where settings and recents are kept.
  ///   - phone: with CallKit, or with `.none` where the app shows its calls itself.
  public init(folder: URL, phone: Phone) {
    store = ModelStore(folder: folder)
    self.phone = phone
    recents = store.recents()
    settings = store.settings()
    phone.doNotDisturb = settings.doesNotDisturb
    let states = phone.states
    tasks.append(
      Task { [weak self] in
        for await state in states { if case .failed(let error) = state { self?.notice = "\(error)" } }
      })
    watch()
  }

  deinit { for task in tasks { task.cancel() } }

  /// Each call is followed to its end, which `states` never misses.
  private func watch() {
    withObservationTracking {
      _ = phone.calls
    } onChange: { [weak self] in
      Task { @MainActor in self?.watch() }
    }
    for call in phone.calls where watched.insert(call.id).inserted {
      let states = call.states
      Task { [weak self] in
        for await state in states { if case .ended = state { self?.ended(call) } }
      }
    }
  }

  private func ended(_ call: Call) {
    watched.remove(call.id)
    if let error = call.error { notice = "\(error)" }
    recents.insert(RecentCall(call), at: 0)
    if recents.count > ModelStore.longestRecents { recents.removeLast() }
    store.write(recents)
  }
}
