/** A view fills a part of the page; what it gives back is called when the user leaves it. */
export type View = (place: HTMLElement, argument: string) => void | (() => void);
