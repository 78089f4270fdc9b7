/// Which route is used: the app's choice while it is available. No clock, I/O or threads.
///
/// | state | event | next |
/// |---|---|---|
/// | system's | `choose(route)` of an available route | chosen: `use(route)` |
/// | any | `choose(route)` of another route | unchanged; false |
/// | any | `choose(nil)` | system's: `use(nil)` |
/// | chosen | listed without it | fallback: `use(nil)`, `fellBack` |
/// | fallback | listed with it | chosen: `use(route)`, `returned` |
/// | chosen and current | listed with another current route | that route is chosen: the user used the system's picker |
/// | chosen | audio starts | `use(route)`: a reactivated session has lost the choice |
///
/// Each appearance of the chosen route causes one `use`, so that the phone does not argue with a system that decides otherwise.
struct AudioRouteChoice: Sendable {
  enum Action: Sendable, Equatable {
    case use(AudioRoute?)
    case fellBack(from: AudioRoute)
    case returned(to: AudioRoute)
  }

  private(set) var list = AudioRouteList(available: [], current: nil)
  /// The route that the app, or the user in the system's picker, has chosen; nil: the system decides.
  private(set) var chosen: AudioRoute?
  /// The chosen route is not available.
  private(set) var isFallback = false
  /// The chosen route has been current since it was requested.
  private var isInUse = false

  /// False: the route is not available, and nothing changes.
  mutating func choose(_ route: AudioRoute?, into actions: inout [Action]) -> Bool {
    if let route, !list.available.contains(where: { $0.id == route.id }) { return false }
    chosen = route
    isFallback = false
    isInUse = false
    actions.append(.use(route))
    return true
  }

  mutating func listed(_ next: AudioRouteList, into actions: inout [Action]) {
    list = next
    list.available = Array(next.available.prefix(Self.mostRoutes))
    guard let chosen else { return }
    guard let there = list.available.first(where: { $0.id == chosen.id }) else {
      guard !isFallback else { return }
      isFallback = true
      isInUse = false
      actions.append(.use(nil))
      actions.append(.fellBack(from: chosen))
      return
    }
    if isFallback {
      isFallback = false
      self.chosen = there
      actions.append(.use(there))
      actions.append(.returned(to: there))
    }
    guard let current = list.current else { return }
    if current.id == there.id { return isInUse = true }
    // an accessory that was just plugged in is the user's newest choice, too
    guard isInUse else { return }
    self.chosen = current
  }

  /// Audio starts.
  func started(into actions: inout [Action]) {
    if let chosen, !isFallback { actions.append(.use(chosen)) }
  }

  private static let mostRoutes = 32
}
