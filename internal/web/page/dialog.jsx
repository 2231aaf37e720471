// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

import { useLayoutEffect, useRef } from "preact/hooks";

/** Dialog is a dialog over the page, open for as long as it is drawn. onClose has it be drawn no more. */
export function Dialog({ onClose, children, ...rest }) {
  const dialog = useRef(null);
  // A stroke that comes next is for the dialog, so that it cannot wait for a frame. Closing
  // it leads the focus back to where it was.
  useLayoutEffect(() => {
    const at = dialog.current;
    at.showModal();
    return () => at.close();
  }, []);
  // A browser tells of what was closed in a task of its own, and strokes come before that:
  // by then another dialog may be open. Of Esc it tells at once.
  return (
    <dialog {...rest} ref={dialog} onCancel={(event) => { event.preventDefault(); onClose(); }} onClose={() => { if (dialog.current) onClose(); }}>
      {children}
    </dialog>
  );
}
