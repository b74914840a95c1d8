/** What begins when a process becomes the leader. */
export interface Leading {
  /**
   * Ends it: at leisure where the process stops, which may take as long as leadership is held, and at once where
   * leadership is lost, which may also be asked for while it ends at leisure. Fulfilled when nothing of it is under way
   * any more; rejects where something is and will not end.
   */
  end(because: 'stopping' | 'lost'): Promise<void>;
}
