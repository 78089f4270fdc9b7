/// Which route is used: the app's choice, as long as it is there. No clock, I/O or threads.
///
/// | state | event | next |
/// |---|---|---|
/// | system's | `choose(route)` that is there | chosen: `use(route)` |
/// | any | `choose(route)` that is not there | unchanged; false |
/// | any | `choose(nil)` | system's: `use(nil)` |
/// | chosen | listed without it | fallback: `use(nil)`, `fellBack` |
/// | fallback | listed with it | chosen: `use(route)`, `returned` |
/// | chosen, and it was the current one | listed with it, and another is current | chosen is that other: the user took it in the system's own picker |
/// | chosen | audio starts | `use(route)`: a session that is activated anew has forgotten it |
///
/// Each appearance of the chosen route causes one `use`, so that a system that does otherwise is not argued with.
struct AudioRouteChoice: Sendable {
  enum Action: Sendable, Equatable {
    case use(AudioRoute?)
    case fellBack(from: AudioRoute)
    case returned(to: AudioRoute)
  }

  private(set) var list = AudioRouteList(available: [], current: nil)
  /// What the app, or the user by the system's picker, has chosen; nil: the system decides.
  private(set) var chosen: AudioRoute?
  /// The chosen one is not there.
  private(set) var isFallback = false
  /// The chosen one has been the current one since it was asked for.
  private var isInUse = false

  /// False: there is no such route now, and nothing is changed.
  mutating func choose(_ route: AudioRoute?, into actions: inout [Action]) -> Bool {
    if let route, !list.available.contains(where: { $0.id == route.id }) { return false }
    (chosen, isFallback, isInUse) = (route, false, false)
    actions.append(.use(route))
    return true
  }

  mutating func listed(_ next: AudioRouteList, into actions: inout [Action]) {
    list = next
    list.available = Array(next.available.prefix(Self.mostRoutes))
    guard let chosen else { return }
    guard let there = list.available.first(where: { $0.id == chosen.id }) else {
      guard !isFallback else { return }
      (isFallback, isInUse) = (true, false)
      actions.append(.use(nil))
      actions.append(.fellBack(from: chosen))
      return
    }
    if isFallback {
      (isFallback, self.chosen) = (false, there)
      actions.append(.use(there))
      actions.append(.returned(to: there))
    }
    guard let current = list.current else { return }
    if current.id == there.id { return isInUse = true }
    // one that plugs itself in is the user's newest wish, too
    guard isInUse else { return }
    self.chosen = current
  }

  /// Audio runs from now on.
  func started(into actions: inout [Action]) {
    if let chosen, !isFallback { actions.append(.use(chosen)) }
  }

  private static let mostRoutes = 32
}
