/// A value that belongs to the thread of an event loop, held by others: they pass it on and post to it, and cannot use it.
///
/// Unchecked, because `Value` need not be Sendable. It is safe as every use of the value is checked by the loop: the thread that
/// sets the loop up uses it before `run`, the loop's thread during `run`, and the thread that joined that one afterwards. What the
/// value holds must not be used by other ways at the same time.
///
///     let control = LoopBound(try Control(loop: loop, …), to: loop)
///     control.post { $0.moved(addresses) }                // any thread
///     control.value.handle(input)                         // the loop's thread; ends the process on another
public final class LoopBound<Value>: @unchecked Sendable {
  private let loop: EventLoop
  private let content: Value

  /// On the thread that sets the loop up.
  public init(_ value: Value, to loop: EventLoop) {
    loop.preconditionOnThread()
    (self.loop, content) = (loop, value)
  }

  /// The value; ends the process unless the caller is the loop's thread, or the loop does not run.
  public var value: Value {
    loop.preconditionOnThread()
    return content
  }

  /// Any thread: runs `work` on the loop's thread in the order of the posts. False if too many are queued: it will not run.
  @discardableResult public func post(_ work: @escaping @Sendable (Value) -> Void) -> Bool {
    loop.post { [self] in work(content) }
  }
}
