// The pages of the repository as a site. They stay as they are for who reads them in the repository: a README is the index
// of its folder, what is no page is linked in the repository, and the pages of docs/README.md, by question, are the menu.
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { defineConfig } from 'vitepress'

const top = resolve(import.meta.dirname, '../.pages') // a copy of them: pages must be beside the packages that they are made with
const repository = 'https://github.com/signalbox-io/signalbox'

const asIndex = (path) => path.replace(/(^|\/)README\.md/, '$1index.md')

// menu has a group for each bold heading of docs/README.md, and an item for each link in the table below it.
function menu() {
  const groups = []
  for (const line of readFileSync(join(top, 'docs/README.md'), 'utf8').split('\n')) {
    const heading = /^\*\*(.+)\*\*$/.exec(line)
    if (heading) groups.push({ text: heading[1], collapsed: true, items: [] })
    if (!line.startsWith('|') || groups.length === 0) continue
    for (const [, text, path] of line.matchAll(/\[([^\]]+)\]\(([^)]+\.md(?:#[^)]*)?)\)/g)) {
      groups.at(-1).items.push({ text, link: '/' + asIndex(relative(top, resolve(top, 'docs', path))) })
    }
  }
  return groups
}

export default defineConfig({
  title: 'Signalbox',
  description: 'Locks, fair semaphores and task queues on Redis, on Valkey, or with nothing installed',
  srcDir: top,
  outDir: '../../dist/site',
  rewrites: asIndex,
  markdown: {
    html: false,
    languageAlias: { redis: 'shellsession', conf: 'ini' },
    // Headings have the anchors that they have in the repository.
    anchor: { slugify: (text) => text.trim().toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-') },
    config(md) {
      const open = md.renderer.rules.link_open
      md.renderer.rules.link_open = (tokens, at, options, env, self) => {
        const target = tokens[at].attrGet('href')
        if (!/^([a-z]+:|#)/.test(target)) {
          const path = relative(top, resolve(top, dirname(env.relativePath), target))
          tokens[at].attrSet('href', /\.md(#|$)/.test(target) ? asIndex(target) : `${repository}/blob/main/${path}`)
        }
        return open(tokens, at, options, env, self)
      }
    },
  },
  themeConfig: {
    nav: [{ text: 'Pages by question', link: '/docs/index.md' }, { text: 'Repository', link: repository }],
    sidebar: menu(),
    outline: [2, 3],
    search: { provider: 'local' },
  },
})
