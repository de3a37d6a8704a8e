" The shop.
source other.vim
runtime plugin/x.vim
let g:limit = 10
let s:count = 0
" Prices.
function! shop#price(name) abort
  let l:local = s:helper(a:name)
  call shop#other#close()
  return l:local
endfunction
function s:helper(x)
  return len(a:x)
endfunction
command! -nargs=1 Shop call shop#price(<q-args>)
augroup shop
  autocmd BufRead *.shop call s:helper(1)
augroup END

function! s:Dir.open(path) dict abort
  call self.refresh(a:path)
endfunction
